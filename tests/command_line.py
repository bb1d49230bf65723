"""Type a command line, within this process."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest
from lossscope_cli import app
from typer.main import get_command
from typer.testing import CliRunner, Result

tree = cache(get_command)  # building the tree of all commands takes a tenth of a second


def lossscope(*words: object, columns: int | None = None) -> Result:
    """Run `lossscope WORDS`; one text alone is split at its blanks.

    Args:
        words: of the command line, after the name.
        columns: of the terminal; None: as the environment says.
    """
    line = [str(word) for word in words]
    environment = {} if columns is None else {"COLUMNS": str(columns)}
    return CliRunner(env=environment).invoke(app, line[0].split() if len(line) == 1 else line)


def plain(text: str) -> str:
    """Return a text on one line, without the frame of usage errors."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def message(result: Result) -> str:
    """Return what a command wrote to stderr, on one line, without the frame of usage errors."""
    return plain(result.stderr)


def document(result: Result) -> dict[str, Any]:
    """Return the JSON document that a command wrote; numbers that are not finite fail."""
    assert result.exit_code == 0, result.output
    loaded: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return loaded


def rows_of(result: Result) -> list[dict[str, Any]]:
    """Return the rows of a JSON document."""
    rows: list[dict[str, Any]] = document(result)["rows"]
    return rows
