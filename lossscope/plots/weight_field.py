"""What does an objective do to both sides of a triplet? Its pull on the positive beside its push on the negative."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import contours, labels, style

COLUMNS = ("objective", "s_pos", "s_neg", "w_pos", "w_neg")
SIDES = {
    "w_pos": (r"pull on the positive, $-\partial L/\partial s_+$", "pull on the positive", -1.0),
    "w_neg": (r"push on the negative, $\partial L/\partial s_-$", "push on the negative", 1.0),
}
_LINES = 6  # parts of the colour bar that lines divide
_STEPS = 64  # colours: fewer than eyes can distinguish, and files of a third of the size
_SLOPE = 0.06  # of the plane must lie between the outer lines; on less they would be one
_NAME = "weight_field"
_Grid = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, top: float | None = None) -> Figure:
    """How hard does an objective pull, and push, at every pair of similarities?

    Read as triplet_field: positive similarity horizontally, negative similarity vertically; bottom right is solved.
    Left the pull on the positive, right the push on the negative, each on its own scale; below 0, in violet, it does
    the opposite. Lines are at round weights, marked on the colour bar, and some state theirs, in its unit; a field that
    is nearly all cliff has none.

    Args:
        frame: columns COLUMNS, of one objective, on a full grid.
        top: weight at the end of the colour bar, if below the largest.
    """
    objective = style.single_value(_check(frame), "objective", _NAME)
    fig = style.new_figure(width=1.7, height=0.98)
    style.set_headline(fig, f"Weights of {labels.label_text(objective)} on a query with two candidates")
    fig.set_layout_engine("compressed")
    for index, value in enumerate(SIDES):
        ax = fig.add_subplot(1, 2, index + 1)
        _draw_panel(ax, frame, value, top)
        ax.set(xlabel="positive similarity $s_+$", ylabel="" if index else "negative similarity $s_-$")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    objective = style.single_value(_check(frame), "objective", _NAME)
    ranges = [f"{name} {_range(sign * frame[value].to_numpy(float))}" for value, (_, name, sign) in SIDES.items()]
    return f"Heat maps over positive and negative similarity. {labels.in_words(objective)}: {', '.join(ranges)}."


def _draw_panel(ax: Axes, frame: pd.DataFrame, value: str, top: float | None) -> None:
    title, _, sign = SIDES[value]
    wide = frame.pivot_table(index="s_neg", columns="s_pos", values=value)
    x, y, w = wide.columns.to_numpy(), wide.index.to_numpy(), sign * wide.to_numpy(dtype=np.float64)
    largest = float(f"{np.abs(w).max():.3g}") or 1.0  # rounded, so that a tick can stand at the end of the bar
    end = min(largest, top or largest)
    signed = bool(w.min() < 0)
    colour_map = colormaps["PuOr_r" if signed else "cividis"].resampled(_STEPS)
    mesh = ax.pcolormesh(
        x, y, w, shading="nearest", cmap=colour_map, vmin=-end if signed else 0.0, vmax=end, rasterized=True
    )
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), aspect="equal", title=f"{title}\n{_range(w)}")
    ax.locator_params(nbins=4)
    above, below = w.max() > 1.01 * end, w.min() < -1.01 * end
    bar = ax.figure.colorbar(
        mesh, ax=ax, extend="both" if above and below else "max" if above else "min" if below else "neither"
    )
    bar.outline.set_visible(False)
    levels = [level for level in contours.round_levels(end, _LINES) if w.min() < level < w.max()]
    if levels and np.mean((w > levels[0]) & (w < levels[-1])) > _SLOPE:
        bar.add_lines(contours.draw_lines(ax, mesh, (x, y), w, levels, contours.outer_and_middle(levels)))


def _range(w: _Grid) -> str:
    """Return `0 to 12.2`, or `10 everywhere`; what is less than a thousandth of the largest reads 0."""
    low, high = (0.0 if abs(end) < 1e-3 * np.abs(w).max() else float(end) for end in (w.min(), w.max()))
    text = f"{high:.3g} everywhere" if high - low <= 1e-6 * abs(high) else f"{low:.3g} to {high:.3g}"
    return text.replace("-", "−")


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raises InputError unless it has all columns, full grids and finite weights."""
    style.require_rows(frame, COLUMNS, _NAME)
    n_x, n_y = frame["s_pos"].nunique(), frame["s_neg"].nunique()
    points = frame[["objective", "s_pos", "s_neg"]].drop_duplicates()
    if not len(frame) == len(points) == n_x * n_y * frame["objective"].nunique() or min(n_x, n_y) < 2:
        raise InputError(
            f"frame of {_NAME} must hold each point of an s_pos x s_neg grid once, at least 2 x 2; got "
            f"{len(frame)} rows for {n_x} x {n_y}. Compute what is missing, drop what is there twice"
        )
    if not np.isfinite(frame[["w_pos", "w_neg"]].to_numpy(dtype=np.float64)).all():
        raise InputError(f"weights of {_NAME} must be finite; got NaN or infinity. Look at the objective there")
    return frame
