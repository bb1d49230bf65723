"""Where does a step of gradient descent move a triplet, at every pair of similarities?"""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("objective", "s_pos", "s_neg", "w_pos", "w_neg")
ARROWS = 17  # along a side, at most
STILL = 1e-3  # of the largest gradient: smaller ones are dots
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0.1, 1.0, 256)), "direction")
_HEADLINE = "Where a step of descent moves the two similarities of a query"
_NAME = "direction_field"


def draw(frame: pd.DataFrame, ax: Axes | None = None, top: float | None = None) -> Axes:
    """(-dL/ds₊, -dL/ds₋) as an arrow at each pair of similarities: in which direction, and how strongly, is it pushed?

    Horizontal: positive similarity. Vertical: negative similarity. An arrow to the right pulls the positive closer, one
    down pushes the negative away, one at 45 degrees does both equally. All arrows have one length; the darker, the
    larger the gradient, (w₊² + w₋²)^½. A dot has less than a thousandth of the largest gradient. The arrows show what
    the loss asks of the two similarities, not what an encoder does with it.

    Args:
        frame: columns COLUMNS, of one objective, on a full grid; at most 17 x 17 of its points are drawn.
        ax: axes to draw on; None: new ones.
        top: gradient at the end of the colour bar; None: the largest.
    """
    objective = style.single_value(_check(frame), "objective", _NAME)
    ax = style.axes_or_new(ax, _HEADLINE)
    arrows = _draw_arrows(ax, frame, top)
    bar = ax.figure.colorbar(arrows, ax=ax, label="size of the gradient")
    bar.outline.set_visible(False)
    ax.set_ylabel("negative similarity $s_-$")
    ax.set_title(style.wrap_words(labels.label_text(objective), 34))
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do objectives differ in where they push? A panel each, as `draw`; colours are shares of its largest gradient.

    Args:
        frame: columns COLUMNS, on a full grid for each objective.
    """
    objectives = list(_check(frame)["objective"].unique())
    per_row = style.panels_per_row(len(objectives))
    n_rows = math.ceil(len(objectives) / per_row)
    fig = style.new_figure(width=0.3 + 0.55 * per_row, height=0.08 + 0.9 * n_rows)
    style.set_headline(fig, _HEADLINE)
    fig.set_layout_engine("compressed")
    titles = []
    for index, objective in enumerate(objectives):
        ax = fig.add_subplot(n_rows, per_row, index + 1)
        field = frame[frame["objective"] == objective]
        largest = float(np.hypot(field["w_pos"], field["w_neg"]).max()) or 1.0
        arrows = _draw_arrows(ax, field.assign(w_pos=field["w_pos"] / largest, w_neg=field["w_neg"] / largest), 1.0)
        titles.append(f"{style.wrap_words(labels.label_text(str(objective)), 22)}\nlargest {largest:.3g}")
        ax.set_xlabel("positive similarity $s_+$" if index + per_row >= len(objectives) else "")
        ax.set_ylabel("negative similarity $s_-$" if index % per_row == 0 else "")
    bar = fig.colorbar(arrows, ax=list(fig.axes), label="size of the gradient / its largest")
    bar.outline.set_visible(False)
    naming.title_panels(fig, titles, per_row)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for objective, field in _check(frame).groupby("objective", sort=False, observed=True):
        size = np.hypot(field["w_pos"].to_numpy(np.float64), field["w_neg"].to_numpy(np.float64))
        moving = field[size > STILL * size.max()]
        pulled = float((-moving["w_pos"] > moving["w_neg"].abs() * (1 + 1e-9)).mean()) if len(moving) else 0.0
        pushed = float((moving["w_neg"] > moving["w_pos"].abs() * (1 + 1e-9)).mean()) if len(moving) else 0.0
        parts.append(
            f"{labels.in_words(str(objective))}: largest {size.max():.3g}; "
            f"{1 - len(moving) / len(field):.0%} of the plane is not moved; of "
            f"the rest {pulled:.0%} is mostly pulled towards the positive and {pushed:.0%} mostly pushed from the "
            "negative"
        )
    return "Arrows of gradient descent over positive and negative similarity. " + ". ".join(parts) + "."


def _draw_arrows(ax: Axes, frame: pd.DataFrame, top: float | None) -> Quiver:
    coarse = _coarse_grid(frame)
    x, y, w_pos, w_neg = (coarse[name].to_numpy(dtype=np.float64) for name in ("s_pos", "s_neg", "w_pos", "w_neg"))
    size = np.hypot(w_pos, w_neg)
    end = top or float(np.hypot(frame["w_pos"], frame["w_neg"]).max()) or 1.0
    moving = size > STILL * end
    step = min(np.diff(np.unique(x)).min(), np.diff(np.unique(y)).min())
    length = np.where(moving, size, 1.0)
    arrows = ax.quiver(
        x[moving], y[moving], (-w_pos / length * 0.8 * step)[moving], (-w_neg / length * 0.8 * step)[moving],
        size[moving], angles="xy", scale_units="xy", scale=1, pivot="mid", cmap=_COLOURS, clim=(0, end), units="xy",
        width=0.1 * step,
    )  # fmt: skip
    dot = 0.012 * float(mpl.rcParams["font.size"]) ** 2
    ax.scatter(x[~moving], y[~moving], s=dot, color="0.6", linewidths=0, label="still")
    half = step / 2
    ax.set(xlim=(x.min() - half, x.max() + half), ylim=(y.min() - half, y.max() + half), aspect="equal")
    ax.set_xlabel("positive similarity $s_+$")
    ax.locator_params(nbins=5)
    return arrows


def _coarse_grid(frame: pd.DataFrame) -> pd.DataFrame:
    """Return every k-th point of the grid, at most ARROWS along a side."""
    coarse = frame
    for name in ("s_pos", "s_neg"):
        values = np.sort(frame[name].unique())
        stride = math.ceil((len(values) - 1) / (ARROWS - 1))
        first = (len(values) - 1) % stride // 2
        coarse = coarse[coarse[name].isin(values[first::stride])]
    return coarse


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raises InputError unless it has all columns, full grids and finite weights."""
    style.require_rows(frame, COLUMNS, _NAME)
    for _, field in frame.groupby("objective", observed=True):
        n_x, n_y = field["s_pos"].nunique(), field["s_neg"].nunique()
        if len(field.drop_duplicates(["s_pos", "s_neg"])) != n_x * n_y or len(field) != n_x * n_y or min(n_x, n_y) < 2:
            raise InputError(
                f"frame of {_NAME} must hold each point of an s_pos x s_neg grid once, at least 2 x 2; got "
                f"{len(field)} rows for {n_x} x {n_y}. Compute what is missing, drop what is there twice"
            )
    if not np.isfinite(frame[["w_pos", "w_neg"]].to_numpy(dtype=np.float64)).all():
        raise InputError(f"weights of {_NAME} must be finite; got NaN or infinity. Look at the objective there")
    return frame
