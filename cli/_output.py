"""Where output goes: results to stdout in the format that --format names, notices to stderr."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lossscope.io.reading import show_path
from lossscope.visible_text import show_text

from . import _processes
from ._running import is_quiet

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.tables.base import Table

WRITTEN = ("out", "run_files", "page", "picture", "curve", "cells", "per_batch")
"""Names of the options whose values are files or folders that commands write."""
_WRITERS = {"markdown": "to_markdown", "latex": "to_latex", "csv": "to_csv"}
_WIDE = 120  # columns of a pipe that does not say COLUMNS
_BETWEEN_LINES = "\n\t"
_LEAST = 4  # indent of a word that no more deeply indented line can hold


def require_outputs(given: Mapping[str, Any]) -> None:
    """Raise WriteError for a file or folder that a command could not write in the end, before its work.

    Args:
        given: options of the command, by name.
    """
    from lossscope.io.write_errors import require_writable

    for path in filter(None, map(given.get, WRITTEN)):
        require_writable(Path(path))


def print_results(
    rows: pd.DataFrame,
    tables: Callable[[], Sequence[Table]],
    command: Mapping[str, Any],
    format: str,
    out: Path | None = None,
    schema: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write summary rows as JSON or CSV, or their tables as text, Markdown or LaTeX. Of many processes one writes.

    Args:
        rows: the numbers.
        tables: makes the tables.
        command: recorded in the JSON document.
        format: table, json, csv, markdown or latex.
        out: file to write instead of stdout.
        schema: of the JSON document, where the rows are no summary rows.
        more: further entries of the JSON document.
    """
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.frames import SUMMARY_SCHEMA, summary_document

    if not _processes.writes_results():
        return
    if format == "json":
        text = summary_document(rows, command, schema or SUMMARY_SCHEMA, more)
    elif format == "csv":
        text = format_csv(rows)
    else:
        text = _text_of(tables(), format)
    _write(text, out)


def print_tables(tables: Sequence[Table], format: str, out: Path | None = None) -> None:
    """Write tables as text, Markdown, LaTeX or CSV, to a file where `out` is given."""
    _write(_text_of(tables, format), out)


def print_text(text: str, out: Path | None = None) -> None:
    """Write a text to stdout, or to a file where `out` is given."""
    _write(text, out)


def print_csv(*tables: pd.DataFrame) -> None:
    """Write rows as CSV on stdout, tables one below another."""
    from lossscope.io.csv_tables import format_csv

    _write("\n".join(map(format_csv, tables)), None)


def terminal_width() -> int:
    """Return COLUMNS where it is set, else the width of the terminal, else 120: output is a pipe or a file."""
    return shutil.get_terminal_size((_WIDE, 24)).columns


def fold(text: str, indent: int = 4) -> str:
    """Return a text in lines no wider than the terminal, broken after blanks and commas, never within a word or number.

    Args:
        text: one paragraph.
        indent: of all lines but the first; a word that is too long for such a line is indented by less.
    """
    lines, width, text = [""], terminal_width(), show_text(text, _BETWEEN_LINES)
    for piece in re.findall(r"(?:[^ ,]|,(?=\d))+[ ,]?|[ ,]", text):
        if len(lines[-1] + piece.rstrip()) > width and lines[-1].strip():
            lines.append(" " * (indent if indent + len(piece.rstrip()) <= width else min(indent, _LEAST)))
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _text_of(tables: Sequence[Table], format: str) -> str:
    if format != "table":
        return "\n".join(getattr(table, _WRITERS[format])() for table in tables)
    width = terminal_width()
    return "\n".join(table.to_text(width) for table in _explained_once(tables))


def _explained_once(tables: Sequence[Table]) -> list[Table]:
    """Return the tables without lines of a legend that an earlier one has."""
    known: set[str] = set()
    once = []
    for table in tables:
        once.append(replace(table, legend=tuple(line for line in table.legend if line not in known)))
        known.update(table.legend)
    return once


def _write(text: str, out: Path | None) -> None:
    from lossscope.io.files import write_text

    if out is None:
        shown = show_text(text, _BETWEEN_LINES) if sys.stdout.isatty() else text  # another program gets the data
        typer.echo(shown.rstrip("\n"))
    else:
        write_text(out, text if text.endswith("\n") else text + "\n")


def print_path(path: Path) -> None:
    """Print a path that was written: as it is to another program, without what steers a terminal to a terminal."""
    typer.echo(show_path(path) if sys.stdout.isatty() else path)


def notice(text: str) -> None:
    """Write a line on stderr unless the command is --quiet; names in it cannot steer the terminal."""
    if not is_quiet():
        message(text)


def message(text: str) -> None:
    """Write a line on stderr, which --quiet does not leave out; names in it cannot steer the terminal."""
    typer.echo(show_text(text, _BETWEEN_LINES), err=True)
