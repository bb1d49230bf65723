"""How pictures look and how they are saved: two styles, one function that writes files; colours are in `palette`."""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator

from lossscope.errors import InputError
from lossscope.io import frames
from lossscope.io.files import write_atomically
from lossscope.visible_text import show_text

from .palette import COLOURS as COLOURS
from .palette import PALETTE as PALETTE
from .palette import colours as colours
from .palette import same_colours as same_colours

COLUMN = 3.3  # inches: one column of a two-column paper
PAGE = 2.12  # columns: the widest picture spans both, 7 inches of paper
SMALLEST = 7.0  # points of the smallest text in print, of a picture as wide as its columns
FORMATS = ("pdf", "png", "svg")
_EQUAL = 1e-9  # relative difference within which values are equal
_EPOCH = "SOURCE_DATE_EPOCH"  # environment: the time that a build has in place of the present one
_EVERY_EPOCH = 12  # epochs on an axis that has a tick at each
_EMBED: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "lossscope",
}
_COMMON: dict[Any, Any] = {
    **_EMBED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "lines.solid_capstyle": "round",
}
_PAPER: dict[Any, Any] = {
    **_COMMON,
    "figure.figsize": (COLUMN, 2.5),
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "axes.linewidth": 0.6,
}
_SCREEN: dict[Any, Any] = {  # shrunk to a column of paper, its smallest text still has 7 points
    **_COMMON,
    "figure.figsize": (4.6, 3.4),
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "lines.linewidth": 1.6,
}


def paper() -> AbstractContextManager[None]:
    """Use the settings for one column of a paper inside `with`: 3.3 in wide, 8 pt, fonts embedded."""
    return use(_PAPER)


def screen() -> AbstractContextManager[None]:
    """Use the settings for a page on a screen inside `with`: larger, 11 pt; 7 pt or more at the width of a column."""
    return use(_SCREEN)


@contextmanager
def use(settings: Mapping[Any, Any]) -> Iterator[None]:
    """Use settings inside `with`, and matplotlib's own for all others, whatever a `matplotlibrc` says.

    Such a file may start LaTeX, and pictures would differ between machines.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


@contextmanager
def _undated() -> Iterator[None]:
    """Hide SOURCE_DATE_EPOCH from matplotlib, which reads it for dates that files of lossscope do not have."""
    epoch = os.environ.pop(_EPOCH, None)
    try:
        yield
    finally:
        if epoch is not None:
            os.environ[_EPOCH] = epoch


def save(fig: Figure, path: Path | str, alt: str | None = None) -> Path:
    """Write a picture atomically, without dates in the file, whatever SOURCE_DATE_EPOCH is.

    Args:
        fig: the picture.
        path: its suffix, .pdf, .png or .svg, is the format.
        alt: description in words, kept in the file: its first sentence is the title of an SVG or PDF, all of it is the
            description (SVG, PNG) or the subject (PDF).

    Raises:
        InputError: for any other suffix.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InputError(f"picture must end in .pdf, .png or .svg; got {path.name!r}. Choose one of the three")
    alt = None if alt is None else show_text(alt)
    undated = {"pdf": "CreationDate", "svg": "Date", "png": "Software"}[kind]
    metadata = {undated: None, **(_metadata(kind, alt) if alt else {})}
    with mpl.rc_context(_EMBED), _undated(), write_atomically(path) as part:
        fig.savefig(part, format=kind, dpi=200, metadata=metadata)
    return path


def _metadata(kind: str, alt: str) -> dict[str, str | None]:
    """Return the fields in which each format keeps the description of a picture."""
    title = re.split(r"(?<=[.!?])\s", alt, maxsplit=1)[0]
    return {
        "pdf": {"Title": title, "Subject": alt},
        "svg": {"Title": title, "Description": alt},
        "png": {"Description": alt},
    }[kind]


def new_figure(width: float = 1.0, height: float = 1.0) -> Figure:
    """Return an empty figure of `width` x `height` times the style's size, at most PAGE wide; needs no display."""
    w, h = mpl.rcParams["figure.figsize"]
    return Figure(figsize=(w * min(width, PAGE), h * height), layout="constrained")


def set_headline(fig: Figure, text: str) -> Figure:
    """Write what the figure shows above its panels, in place of what was there; the figure grows by its lines."""
    size = FontProperties(size=mpl.rcParams["axes.titlesize"]).get_size_in_points()
    lines = wrap_words(text, int(fig.get_figwidth() * 72 / (0.6 * size))).splitlines()
    more = len(lines) - len(fig.get_suptitle().splitlines())
    fig.set_figheight(fig.get_figheight() + more * 1.35 * size / 72)
    fig.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=size, fontweight="bold")
    return fig


def headline(fig: Figure) -> str:
    """Return what a figure says it shows, in one line."""
    return " ".join(fig.get_suptitle().split()).replace(r"\$", "$")


def small() -> float:
    """Return the size of the smallest text of the style, in points."""
    return float(FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points())


def panels_per_row(panels: int) -> int:
    """Return how many panels stand side by side: up to three in one row, then as square as possible, at most three."""
    return panels if panels <= 3 else min(3, math.ceil(math.sqrt(panels)))


def axes_or_new(ax: Axes | None, shows: str = "") -> Axes:
    """Return the axes, or new ones in a new figure, whose headline says what it shows."""
    if ax is not None:
        return ax
    fig = new_figure()
    return (set_headline(fig, shows) if shows else fig).add_subplot()


def set_epochs(ax: Axes, epochs: Iterable[float]) -> None:
    """Label a horizontal axis of epochs, from the first that exists: a tick at each if they are few, else at some."""
    known = sorted(epochs)
    ax.set_xlabel("epoch")
    if not known:
        return
    first, last = math.floor(known[0]), math.ceil(known[-1])
    if last - first <= _EVERY_EPOCH:
        ax.set_xticks(range(first, last + 1))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    margin = 0.03 * max(last - first, 1)
    ax.set_xlim(first - margin, last + margin)


def require_rows(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Raise InputError, naming what is missing, unless `frame` has rows and these columns."""
    frames.require_columns(frame, columns, f"frame of {what}")
    if frame.empty:
        raise InputError(f"frame of {what} must have at least one row; got none. Check the selection")


def single_value(frame: pd.DataFrame, column: str, what: str) -> str:
    """Return the only value of a column. Raises InputError when there are several."""
    values = list(map(str, frame[column].unique()))
    if len(values) > 1:
        raise InputError(f"{what}.draw must get one {column}; got {', '.join(values)}. Use {what}.draw_many")
    return values[0]


def wrap_spec(text: str, width: int) -> str:
    """Break a spec after colons or commas, and longer pieces anywhere, into lines of at most `width` characters."""
    lines = [""]
    for piece in re.findall(r"[^,:]*[,:]?", text):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width))


def wrap_words(text: str, width: int) -> str:
    """Break words, and specs of one word after colons and commas, into lines of at most `width` characters."""
    if " " not in text:
        return wrap_spec(text, width)
    joined = text.replace(" = ", "\xa0=\xa0")  # an equation stays on one line
    return textwrap.fill(joined, width).replace("\xa0", " ")


def deviation(values: pd.Series[float]) -> float | None:
    """Return the sample standard deviation (ddof 1), or None where there is none: equal values are no certainty."""
    equal = len(values) < 2 or float(values.max() - values.min()) <= _EQUAL * float(values.abs().max())
    return None if equal else float(values.std())
