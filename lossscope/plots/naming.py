"""Where names stand: of lines beside the panel or in a legend under the picture, of panels above; no two touch."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from scipy.optimize import isotonic_regression

from . import style

_LETTER = 0.58  # width of a letter, part of its size
_FITS = 6  # drawings after which all texts fit: panels of a fixed shape may need more than the estimate
_LINE = 1.35  # height of a line of text, times its size
_GAP = 0.05  # inches between the headline and the panels, and at the upper edge
_EMPTY = 0.3  # inches at the upper and lower edges without anything, at most


def legend_below(fig: Figure, handles: Sequence[Artist], title: str = "") -> None:
    """Add a legend under the panels, wrapped to the width of the figure, whose height grows by it."""
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    line_length = int(fig.get_figwidth() * 72 / (_LETTER * size))  # characters
    labels = [textwrap.fill(str(handle.get_label()), line_length - 8) for handle in handles]
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    columns = max(1, min(line_length // (longest + 8), len(handles)))
    title = textwrap.fill(title, line_length)
    lines = math.ceil(sum(label.count("\n") + 1 for label in labels) / columns) + (
        title.count("\n") + 1 if title else 0
    )
    fig.set_figheight(fig.get_figheight() + (lines + 1.5) * 1.5 * size / 72)
    fig.legend(
        handles, labels, loc="outside lower left", ncols=columns, title=title or None, title_fontsize=size,
        alignment="left", handletextpad=0.6, columnspacing=1.5,
    )  # fmt: skip
    fit_height(fig)


def title_panels(fig: Figure, titles: Sequence[str], per_row: int) -> None:
    """Write a title above each panel, the first axes of a figure, which grows by the lines beyond two of each row.

    Args:
        fig: the picture, drawn but for its titles and its legend.
        titles: of the panels, row by row.
        per_row: panels of a row.
    """
    for ax, title in zip(fig.axes, titles, strict=False):
        ax.set_title(title)
    size = FontProperties(size=mpl.rcParams["axes.titlesize"]).get_size_in_points()
    rows = [titles[start : start + per_row] for start in range(0, len(titles), per_row)]
    more = sum(max(0, max(title.count("\n") for title in row) - 1) for row in rows)
    fig.set_figheight(fig.get_figheight() + more * _LINE * size / 72)
    fit_height(fig)


def fit_height(fig: Figure) -> None:
    """Set the height at which panels and texts are inside, none touches the headline, and no band is empty."""
    for _ in range(_FITS):
        fig.draw_without_rendering()
        box, height = fig.get_tightbbox(), fig.get_figheight()
        outside = max(0.0, box.y1 - height) + max(0.0, -box.y0)
        missing = max(outside, _overlap_with_headline(fig))
        empty = max(0.0, height - box.y1) + max(0.0, box.y0)
        if missing > 0:
            fig.set_figheight(height + missing + _GAP)
        elif empty > _EMPTY:
            fig.set_figheight(height - empty + _EMPTY / 2)
        else:
            break


def _overlap_with_headline(fig: Figure) -> float:
    """Return by how many inches the panels, with their titles, reach into the headline; below 0 where they do not."""
    headline = fig._suptitle  # type: ignore[attr-defined]
    if headline is None or not fig.axes:
        return 0.0
    bottom = headline.get_window_extent().y0
    tops = [box.y1 for box in (ax.get_tightbbox() for ax in fig.axes) if box is not None]
    return float(max(tops, default=-math.inf) - bottom) / fig.dpi


def redraw_legend(legend: Any, inches: float, dpi: float) -> npt.NDArray[np.uint8]:
    """Return the pixels, (height, width, 3), of a legend in one column, its texts wrapped to a width.

    Args:
        legend: of a figure.
        inches: the width.
        dpi: pixels an inch.
    """
    texts = legend.get_texts()
    size = float((texts or [legend.get_title()])[0].get_fontsize())
    line_length = max(16, int(inches * 72 / (_LETTER * size)))
    labels = [textwrap.fill(" ".join(text.get_text().split()), line_length - 6) for text in texts]
    title = textwrap.fill(" ".join(legend.get_title().get_text().split()), line_length)
    lines = sum(text.count("\n") + 2 for text in (*labels, title))
    figure = Figure(figsize=(inches, 2 * lines * size / 72), dpi=dpi)
    canvas: Any = FigureCanvasAgg(figure)
    drawn = figure.legend(
        legend.legend_handles, labels, loc="upper left", ncols=1, fontsize=size, title=title or None,
        title_fontsize=size, alignment="left", frameon=False, borderaxespad=0.0, handletextpad=0.6,
    )  # fmt: skip
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
    return pixels[: math.ceil(len(pixels) - drawn.get_window_extent().y0) + 2]


def end_labels(ax: Axes, x: Sequence[float], y: Sequence[float], texts: Sequence[str], colours: Sequence[str]) -> None:
    """Write each text right of the axes, as level with its point as the others allow, joined to it by a thin line."""
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    size = style.small()
    box = ax.get_position()
    gap = size * 1.3 / 72 / (ax.figure.get_figheight() * box.height)  # type: ignore[union-attr]
    points = [
        float(ax.transAxes.inverted().transform(ax.transData.transform((a, b)))[1]) for a, b in zip(x, y, strict=True)
    ]
    for a, b, text, colour, level in zip(x, y, texts, colours, _keep_apart(points, gap), strict=True):
        arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 2}
        ax.annotate(
            text,
            xy=(a, b),
            xytext=(1.06, level),
            textcoords="axes fraction",
            va="center",
            fontsize=size,
            annotation_clip=False,
            arrowprops=arrow,
        )


def _keep_apart(levels: Sequence[float], gap: float) -> list[float]:
    """Return levels in the same order, at least `gap` apart, with the least squared distance to `levels`.

    It is the isotonic regression of level − rank · gap, to which rank · gap is added again.
    """
    order = np.argsort(levels, kind="stable")
    offsets = gap * np.arange(len(order))
    apart = np.empty(len(order))
    apart[order] = isotonic_regression(np.asarray(levels, dtype=float)[order] - offsets).x + offsets
    return [float(level) for level in apart]
