"""Where does a step of gradient descent move a triplet, at every pair of similarities?"""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from lossscope.errors import InputError

from . import style

COLUMNS = ("objective", "s_pos", "s_neg", "w_pos", "w_neg")
ARROWS = 17  # along a side, at most
STILL = 1e-3  # of the largest: what is shorter is a dot
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0.1, 1.0, 256)), "direction")
_WHAT = "direction_field"
_Points = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None, top: float | None = None) -> Axes:
    """(-dL/ds₊, -dL/ds₋) as an arrow at each pair of similarities: which way, and how strongly, is it pushed?

    Read across: positive similarity; up: negative similarity. An arrow to the right pulls the positive closer, one down
    pushes the negative away, one at 45 degrees does both alike. All arrows have one length; the darker, the larger the
    gradient, (w₊² + w₋²)^½. A dot has less than a thousandth of the largest: nothing moves there. This is the wish of
    the loss for the two similarities, not what an encoder makes of it. Columns: see `COLUMNS`, of one objective, on a
    full grid, of which at most 17 x 17 points are drawn. top: where the colours end, if not at the largest.
    """
    objective = style.single_value(_checked(frame), "objective", _WHAT)
    ax = style.axes_or_new(ax)
    arrows = _paint(ax, frame, top)
    bar = ax.figure.colorbar(arrows, ax=ax, label="size of the gradient")
    bar.outline.set_visible(False)
    ax.set_ylabel("negative similarity $s_-$")
    ax.set_title(style.wrap_spec(objective, 34))
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do objectives differ in where they push? A panel each, as `draw`; colours are shares of its largest."""
    objectives = list(_checked(frame)["objective"].unique())
    across = style.panels_per_row(len(objectives))
    down = math.ceil(len(objectives) / across)
    fig = style.new_figure(width=0.3 + 0.55 * across, height=0.08 + 0.9 * down)
    fig.set_layout_engine("compressed")
    for place, objective in enumerate(objectives):
        ax = fig.add_subplot(down, across, place + 1)
        own = frame[frame["objective"] == objective]
        largest = float(np.hypot(own["w_pos"], own["w_neg"]).max()) or 1.0
        arrows = _paint(ax, own.assign(w_pos=own["w_pos"] / largest, w_neg=own["w_neg"] / largest), 1.0)
        ax.set_title(f"{style.wrap_spec(str(objective), 24)}\nlargest {largest:.3g}")
        ax.set_xlabel("positive similarity $s_+$" if place + across >= len(objectives) else "")
        ax.set_ylabel("negative similarity $s_-$" if place % across == 0 else "")
    bar = fig.colorbar(arrows, ax=list(fig.axes), label="size of the gradient / its largest")
    bar.outline.set_visible(False)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for objective, own in _checked(frame).groupby("objective", sort=False, observed=True):
        size = np.hypot(own["w_pos"].to_numpy(np.float64), own["w_neg"].to_numpy(np.float64))
        moved = own[size > STILL * size.max()]
        pulled = float((-moved["w_pos"] > moved["w_neg"].abs() * (1 + 1e-9)).mean()) if len(moved) else 0.0
        pushed = float((moved["w_neg"] > moved["w_pos"].abs() * (1 + 1e-9)).mean()) if len(moved) else 0.0
        parts.append(
            f"{objective}: largest {size.max():.3g}; {1 - len(moved) / len(own):.0%} of the plane is not moved; of the "
            f"rest {pulled:.0%} is mostly pulled towards the positive and {pushed:.0%} mostly pushed from the negative"
        )
    return "Arrows of gradient descent over positive and negative similarity. " + ". ".join(parts) + "."


def _paint(ax: Axes, frame: pd.DataFrame, top: float | None) -> Quiver:
    some = _coarse(frame)
    x, y, right, up = (some[name].to_numpy(dtype=np.float64) for name in ("s_pos", "s_neg", "w_pos", "w_neg"))
    size = np.hypot(right, up)
    end = top or float(np.hypot(frame["w_pos"], frame["w_neg"]).max()) or 1.0
    moving = size > STILL * end
    step = min(np.diff(np.unique(x)).min(), np.diff(np.unique(y)).min())
    length = np.where(moving, size, 1.0)
    arrows = ax.quiver(
        x[moving], y[moving], (-right / length * 0.8 * step)[moving], (-up / length * 0.8 * step)[moving], size[moving],
        angles="xy", scale_units="xy", scale=1, pivot="mid", cmap=_COLOURS, clim=(0, end), units="xy", width=0.1 * step,
    )  # fmt: skip
    dot = 0.012 * float(mpl.rcParams["font.size"]) ** 2
    ax.scatter(x[~moving], y[~moving], s=dot, color="0.6", linewidths=0, label="still")
    half = step / 2
    ax.set(xlim=(x.min() - half, x.max() + half), ylim=(y.min() - half, y.max() + half), aspect="equal")
    ax.set_xlabel("positive similarity $s_+$")
    ax.locator_params(nbins=5)
    return arrows


def _coarse(frame: pd.DataFrame) -> pd.DataFrame:
    """Every k-th point of the grid, so that at most ARROWS are along a side."""
    kept = frame
    for name in ("s_pos", "s_neg"):
        values = np.sort(frame[name].unique())
        stride = math.ceil((len(values) - 1) / (ARROWS - 1))
        first = (len(values) - 1) % stride // 2
        kept = kept[kept[name].isin(values[first::stride])]
    return kept


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    for _, own in frame.groupby("objective", observed=True):
        across, up = own["s_pos"].nunique(), own["s_neg"].nunique()
        if (
            len(own.drop_duplicates(["s_pos", "s_neg"])) != across * up
            or len(own) != across * up
            or min(across, up) < 2
        ):
            raise InputError(
                f"frame of {_WHAT} must hold each point of a grid of s_pos x s_neg once, 2 x 2 or more; got {len(own)} "
                f"rows for {across} x {up}. Compute what is missing, drop what is there twice"
            )
    if not np.isfinite(frame[["w_pos", "w_neg"]].to_numpy(dtype=np.float64)).all():
        raise InputError(f"weights of {_WHAT} must be finite; got NaN or infinity. Look at the objective there")
    return frame
