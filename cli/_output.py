"""Where output goes: results to stdout in the format asked for, progress and notices to stderr."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import _processes
from ._pace import Pace
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
    schema: str | None = None,
) -> None:
    """Summary rows as JSON or CSV, or their tables as text, Markdown or LaTeX; to the file `out`, else to stdout.

    Of many processes the first one writes them. schema: of the JSON document, where the rows are of another kind.
    """
    from lossscope.io.files import write_text
    from lossscope.io.frames import SUMMARY_SCHEMA, summary_document

    chosen(format, FORMATS, "--format")
    if not _processes.speaks():
        return
    if format == "json":
        text = summary_document(rows, command, schema or SUMMARY_SCHEMA)
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
def progress(quiet: bool, verbose: bool = False) -> Iterator[Progress | None]:
    """A bar with rate and time left on stderr, one per label.

    Nothing when quiet; not on a terminal nothing either, or when verbose a line every half a minute.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not (console.is_terminal or verbose):
        yield None
    elif not console.is_terminal:
        yield lines()
    else:
        with _bars(console) as report:
            yield report


def lines(every: float = 30.0, clock: Callable[[], float] = time.monotonic) -> Progress:
    """`LABEL DONE/TOTAL, 41.2/s, 1:05 left` on stderr at most every so many seconds, and when a label is done."""
    paces: dict[str, Pace] = {}
    said: dict[str, float] = {}

    def report(label: str, done: int, total: int) -> None:
        pace = paces.setdefault(label, Pace(clock))
        pace.seen(done, total)
        now = clock()
        if now - said.setdefault(label, now) >= every or done == total:
            said[label] = now
            notice(", ".join(filter(None, (f"{label} {done}/{total}", pace.told()))))

    return report


@contextlib.contextmanager
def _bars(console: Any) -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, tuple[Any, Pace]] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total, pace=""), Pace()
            task, pace = tasks[label]
            pace.seen(done, total)
            bars.update(task, completed=done, total=total, visible=done < total, pace=pace.told())

        yield report
