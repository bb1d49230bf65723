"""Lines of equal weight over a field, labelled in the unit of its colour bar, readable on every colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_hex
from matplotlib.contour import ContourSet
from matplotlib.ticker import MaxNLocator

from . import style

_EDGE = 0.12  # of the panel, along each side: no number stands there
_GENTLE = 1.5  # times the gentlest slope along a line: where it is steeper, no number stands
_BRIGHT = 0.42  # luminance above which black is more readable than white
_LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue
_Grid = npt.NDArray[np.float64]


def round_levels(largest: float, bins: int) -> list[float]:
    """Return round numbers between 0 and the largest weight, at most `bins` - 1 of them, without the two ends.

    >>> round_levels(9.99, 5)
    [2.0, 4.0, 6.0, 8.0]
    """
    ticks = MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, largest)
    return [float(f"{tick:.6g}") for tick in ticks if 0.01 * largest < tick < 0.99 * largest]


def draw_lines(
    ax: Axes,
    mesh: ScalarMappable,
    axes: tuple[_Grid, _Grid],
    w: _Grid,
    levels: Sequence[float],
    labelled: Sequence[float],
) -> ContourSet:
    """Draw a line at each level, black on bright colours and white on dark ones, with its number on some.

    Args:
        ax: the panel.
        mesh: the field, whose colours the lines are drawn on.
        axes: x (n,) and y (m,).
        w: (m, n), in the unit of the colour bar.
        levels: of the lines, in the same unit, increasing.
        labelled: those of the levels whose number is written.
    """
    colours = [_readable(mesh, level) for level in levels]
    lines = ax.contour(*axes, w, levels=list(levels), colors=colours, linewidths=0.7)
    spots = _places(lines, axes, w, labelled)
    texts = ax.clabel(
        lines, [*spots], fmt="%.3g", fontsize=style.small(), inline_spacing=2, manual=list(spots.values())
    )
    for text in texts:
        behind = "white" if to_hex(text.get_color()) == to_hex("black") else "black"
        text.set_path_effects([patheffects.withStroke(linewidth=1.6, foreground=behind, alpha=0.55)])
    return lines


def outer_and_middle(levels: Sequence[float]) -> list[float]:
    """Return the first, the middle and the last of some levels."""
    return sorted({levels[0], levels[len(levels) // 2], levels[-1]})


def _places(
    lines: ContourSet, axes: tuple[_Grid, _Grid], w: _Grid, labelled: Sequence[float]
) -> dict[float, tuple[float, float]]:
    """Return where on its line each number stands: away from edges and cliffs, further along from line to line."""
    low, high = (np.array([axis[end] for axis in axes]) for end in (0, -1))
    slope = np.hypot(*np.gradient(w))
    spots = {}
    for index, level in enumerate(labelled):
        path = lines.get_paths()[list(lines.levels).index(level)]
        share = (np.asarray(path.vertices, dtype=np.float64) - low) / (high - low)
        inside = share[((share > _EDGE) & (share < 1 - _EDGE)).all(1)]
        if len(inside):
            rows, columns = (
                np.rint(inside[:, k] * (size - 1)).astype(int) for k, size in zip((1, 0), w.shape, strict=True)
            )
            steep = slope[rows, columns]
            gentle = inside[steep <= _GENTLE * steep.min() + 1e-12]
            x, y = low + gentle[int((index + 1) / (len(labelled) + 1) * len(gentle))] * (high - low)
            spots[level] = (float(x), float(y))
    return spots


def _readable(mesh: ScalarMappable, level: float) -> str:
    """Return black or white, whichever is readable on the colour of a level."""
    return "black" if luminance(mesh, level) > _BRIGHT else "white"


def luminance(mesh: ScalarMappable, level: float) -> float:
    """Return how bright the colour of a level is, 0 black to 1 white."""
    return float(np.dot(mesh.to_rgba(np.array([level]))[0, :3], _LUMINANCE))
