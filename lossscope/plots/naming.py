"""Where do the names of lines stand? Beside the panel, level with their ends, or in a legend under the picture."""

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


def below(fig: Figure, handles: Sequence[Artist], title: str = "") -> None:
    """A legend under the panels, wrapped to the width of the figure, which grows by its height."""
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    room = int(fig.get_figwidth() * 72 / (0.58 * size))
    labels = [textwrap.fill(str(handle.get_label()), room - 8) for handle in handles]
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    columns = max(1, min(room // (longest + 8), len(handles)))
    title = textwrap.fill(title, room)
    lines = math.ceil(sum(label.count("\n") + 1 for label in labels) / columns) + (
        title.count("\n") + 1 if title else 0
    )
    fig.set_figheight(fig.get_figheight() + (lines + 1.5) * 1.5 * size / 72)
    fig.legend(
        handles, labels, loc="outside lower left", ncols=columns, title=title or None, title_fontsize=size,
        alignment="left", handletextpad=0.6, columnspacing=1.5,
    )  # fmt: skip
    for _ in range(3):  # panels of a fixed shape may need more than was reckoned
        fig.draw_without_rendering()
        over = float(fig.get_tightbbox().y1) - fig.get_figheight()
        if over <= 0:
            break
        fig.set_figheight(fig.get_figheight() + over + 0.05)


def end_labels(ax: Axes, x: Sequence[float], y: Sequence[float], texts: Sequence[str], tints: Sequence[str]) -> None:
    """Write each text right of the axes, level with its point where there is room, a thin line between."""
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    size = float(mpl.rcParams["font.size"]) * 0.9
    box = ax.get_position()
    gap = size * 1.3 / 72 / (ax.figure.get_figheight() * box.height)  # type: ignore[union-attr]
    wanted = [
        float(ax.transAxes.inverted().transform(ax.transData.transform((a, b)))[1]) for a, b in zip(x, y, strict=True)
    ]
    for a, b, text, tint, level in zip(x, y, texts, tints, _apart(wanted, gap), strict=True):
        arrow = {"arrowstyle": "-", "color": tint, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 2}
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


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Levels at least `gap` from each other, in the same order, near `wanted` and centred on it."""
    order = np.argsort(wanted, kind="stable")
    level = np.asarray(wanted, dtype=float)[order]
    blocks: list[list[float]] = []  # [sum of (wanted - offset), size]
    for value in level:
        blocks.append([value, 1])
        while len(blocks) > 1 and _start(blocks[-1], gap) < _start(blocks[-2], gap) + blocks[-2][1] * gap:
            total, size = blocks.pop()
            before = blocks[-1]
            before[0] += total
            before[1] += size
    placed = [_start(block, gap) + i * gap for block in blocks for i in range(int(block[1]))]
    result = np.empty(len(level))
    result[order] = placed
    return [float(value) for value in result]


def _start(block: list[float], gap: float) -> float:
    return block[0] / block[1] - gap * (block[1] - 1) / 2
