"""Run a command of lossscope in this process and return its output."""

from __future__ import annotations

from lossscope_cli import app  # type: ignore[import-not-found]
from typer.testing import CliRunner


class Refusal(Exception):
    """A command ended with a message; the text is that of stderr."""


def run_command(*arguments: str) -> str:
    """Return the standard output of a command.

    Raises Refusal where it ends with a message and an exit code; other exceptions pass through.
    """
    result = CliRunner().invoke(app, list(arguments))
    if result.exit_code == 0:
        return result.stdout
    if isinstance(result.exception, SystemExit):
        raise Refusal(result.stderr) from result.exception
    assert result.exception is not None
    raise result.exception
