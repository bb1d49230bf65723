"""Where the names of lines stand: beside the panel, level with their ends, or in a legend under the picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from scipy.optimize import isotonic_regression

from . import style


def legend_below(fig: Figure, handles: Sequence[Artist], title: str = "") -> None:
    """Add a legend under the panels, wrapped to the width of the figure, whose height grows by it."""
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    line_length = int(fig.get_figwidth() * 72 / (0.58 * size))  # characters
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
    for _ in range(3):  # panels of a fixed shape may need more than this estimate
        fig.draw_without_rendering()
        missing = float(fig.get_tightbbox().y1) - fig.get_figheight()
        if missing <= 0:
            break
        fig.set_figheight(fig.get_figheight() + missing + 0.05)


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
