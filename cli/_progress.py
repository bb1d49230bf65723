"""Progress of long work on stderr: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lossscope.visible_text import show_text

from ._output import message
from ._running import is_quiet, is_verbose

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import Task

    from lossscope.core.types import Progress


@contextlib.contextmanager
def progress(lines: bool = False) -> Iterator[Progress | None]:
    """Give a function of (label, done, of) that shows a bar with rate and time left on stderr, one per label.

    Nothing is shown with --quiet. Where stderr is no terminal nothing is shown either, or with --verbose a line every
    half minute.

    Args:
        lines: whether these lines are written without --verbose.
    """
    lines = lines or is_verbose()
    if is_quiet():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or lines):
        yield None
    elif not console.is_terminal:
        yield progress_lines()
    else:
        with _bars(console) as report:
            yield report


def progress_lines(every: float = 30.0, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Return a function of (label, done, of) that writes `LABEL 30/90, 41.2/s, 0:00:01 left` lines on stderr.

    Args:
        every: seconds between two lines of one label, at least; the last one is always written.
        clock: seconds.
    """
    from rich.progress import Progress as Bars

    bars = Bars(disable=True, get_time=clock)
    written: dict[str, float] = {}

    def report(label: str, done: int, total: int) -> None:
        task, now = _advance(bars, label, done, total), clock()
        if now - written.setdefault(label, now) >= every or done == total:
            written[label] = now
            message(", ".join(filter(None, (f"{label} {done}/{total}", _rate(task), _left(task)))))

    return report


@contextlib.contextmanager
def _bars(console: Any) -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """Items a second or seconds an item, and the time left."""

        def render(self, task: Task) -> Text:
            return Text(", ".join(filter(None, (_rate(task), _left(task)))))

    label = TextColumn("{task.description}", markup=False)  # brackets of a name are no style
    columns = (label, BarColumn(), MofNCompleteColumn(), RateColumn())
    with Bars(*columns, console=console, transient=True) as bars:

        def report(label: str, done: int, total: int) -> None:
            _advance(bars, label, done, total).visible = done < total

        yield report


def _advance(bars: Bars, label: str, done: int, total: int) -> Task:
    """Take a report into the task of its label; one that falls behind the last one begins the task anew."""
    label = show_text(label)
    task = next((task for task in bars.tasks if task.description == label), None)
    if task is None:
        number = bars.add_task(label, total=total, completed=done, begun=done)
        return next(task for task in bars.tasks if task.id == number)
    if done < task.completed:
        bars.reset(task.id, total=total, completed=done, begun=done)
    else:
        bars.update(task.id, completed=done, total=total)
    return task


def _speed(task: Task) -> float:
    """Items a second since the first report; work done before it is not counted. 0 while it is unknown."""
    return (task.completed - task.fields["begun"]) / task.elapsed if task.elapsed else 0.0


def _rate(task: Task) -> str:
    """`41.2/s`, or `2.5 s each`; empty while it is unknown."""
    speed = _speed(task)
    if not speed:
        return ""
    return f"{speed:.3g}/s" if speed >= 1 else f"{1 / speed:.3g} s each"


def _left(task: Task) -> str:
    """`0:01:05 left`; empty at the end and while it is unknown."""
    from datetime import timedelta

    speed = _speed(task)
    return f"{timedelta(seconds=round(task.remaining / speed))} left" if speed and task.remaining else ""
