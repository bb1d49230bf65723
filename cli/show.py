"""Where output goes: results to stdout in the format asked for, progress and notices to stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .app import chosen

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.tables.base import Table

FORMATS = ("table", "json", "csv", "markdown", "latex")
Progress = Callable[[str, int, int], None]


def results(
    rows: pd.DataFrame,
    tables: Callable[[], Sequence[Table]],
    command: Mapping[str, Any],
    format: str,
    out: Path | None = None,
) -> None:
    """Summary rows as JSON or CSV, or their tables as text, Markdown or LaTeX; to the file `out`, else to stdout."""
    from lossscope.files import write_text
    from lossscope.frames import summary_document

    chosen(format, FORMATS, "--format")
    if format == "json":
        text = summary_document(rows, command)
    elif format == "csv":
        text = str(rows.to_csv(index=False, lineterminator="\n"))
    else:
        write = {"table": "to_text", "markdown": "to_markdown", "latex": "to_latex"}[format]
        text = "\n".join(getattr(table, write)() for table in tables())
    if out is None:
        typer.echo(text.rstrip("\n"))
    else:
        write_text(out, text if text.endswith("\n") else text + "\n")


def notice(text: str, quiet: bool = False) -> None:
    """A line on stderr."""
    if not quiet:
        typer.echo(text, err=True)


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Progress | None]:
    """A bar with rate and time left on stderr, one per label; nothing when quiet or not on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    with Bars(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console,
        transient=True,
    ) as bars:  # fmt: skip
        tasks: dict[str, Any] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=done, total=total, visible=done < total)

        yield report
