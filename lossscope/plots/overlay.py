"""Where on the triplet diagram are a model's queries, and how do they get there in training?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps, patheffects
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.ndimage import gaussian_filter, map_coordinates

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("source", "split", "epoch", "direction", "s_pos", "s_neg", "batch_size")
SHARES = (0.9, 0.5)  # of the queries, within the outer and the inner line
_HOLD = ("90 %", "50 %")
FEW = 50  # fewer queries are drawn one by one
CLOUDS = 8  # of a path that are drawn, at most; the medians of all are joined
_BINS = 96
_PEAK = 0.98  # of the height, at most, is where a line runs: points in one place have one too
_FLOOR = 0.004  # of similarity: a cloud that is a line is drawn this wide
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
_TINTS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#882255", "#332288")
_WHAT = "overlay"
_Points = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Where are the queries of each source? Read on the axes of a triplet field: s₊ across, hardest s₋ up.

    The thick line holds half of the queries, the thin one 90 %: those that lie where a smoothed histogram is highest,
    both directions together; the cross is at the medians. Fewer than 50 queries are dots. A cloud below the diagonal
    is ranked right; what the field says where the cloud is, is what this loss does to these data. Hardest negatives are
    of a batch, whose size the legend says. Columns: see `COLUMNS`; each source once, of one epoch.
    """
    _checked(frame)
    if (frame.groupby("source", observed=True)["epoch"].nunique() > 1).any():
        raise InputError(f"{_WHAT}.draw must get one epoch of each source; got several. Use {_WHAT}.draw_path")
    ax = _labelled(style.axes_or_new(None)) if ax is None else ax
    for place, (_, rows) in enumerate(frame.groupby("source", sort=False, observed=True)):
        tint, dash = _look(place)
        _cloud(ax, rows, tint, SHARES, dash)
        _mark(ax, [_middle(rows)], tint, "X")
    return ax


def draw_path(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How does the cloud of one run move in training? A line round half of the queries of an epoch, light to dark.

    The medians are joined in the order of the epochs (of more than 8 some have a line round them, evenly spaced); a
    circle is at the first, a square at the last checkpoint. A path that climbs along the diagonal pulls everything
    together; one that bends to the right learns to rank. Columns: see `COLUMNS`, one source, several epochs.
    """
    _checked(frame)
    style.single_value(frame, "source", f"{_WHAT}.draw_path")
    ax = _labelled(style.axes_or_new(None)) if ax is None else ax
    epochs = sorted(frame["epoch"].dropna().unique())
    if len(epochs) < 2:
        raise InputError(f"a path must have two epochs or more; got {len(epochs)}. Use {_WHAT}.draw for one")
    shades = _shades(len(epochs))
    parts = [frame[frame["epoch"] == epoch] for epoch in epochs]
    for place in _some(len(parts)):
        _cloud(ax, parts[place], shades[place], SHARES[1:], "-")
    middles = [_middle(rows) for rows in parts]
    across, up = zip(*middles, strict=True)
    ax.plot(across, up, color="black", linewidth=1, path_effects=_halo(1), zorder=4, label="medians")
    _mark(ax, middles[:1], shades[0], "o")
    _mark(ax, middles[-1:], shades[-1], "s")
    return ax


def legend(fig: Figure, frame: pd.DataFrame) -> None:
    """Under the figure, which grows by it: what the lines hold; which source, split, batch size, how many queries."""
    _checked(frame)
    if frame["epoch"].nunique() > 1:
        naming.legend_below(fig, _epochs(frame), _caption(frame))
    else:
        naming.legend_below(fig, _sources(frame), f"Lines hold {_HOLD[1]} and {_HOLD[0]} of the queries")


def _sources(frame: pd.DataFrame) -> list[Line2D]:
    handles = []
    for place, (_, rows) in enumerate(frame.groupby("source", sort=False, observed=True)):
        tint, dash = _look(place)
        handles.append(Line2D([], [], color=tint, linestyle=dash, marker="X", label=_told(rows)))
    return handles


def _epochs(frame: pd.DataFrame) -> list[Line2D]:
    epochs = sorted(frame["epoch"].dropna().unique())
    shades, handles = _shades(len(epochs)), []
    for place in _some(len(epochs)):
        mark = "o" if place == 0 else "s" if place == len(epochs) - 1 else ""
        handles.append(Line2D([], [], color=shades[place], marker=mark, label=f"epoch {epochs[place]:g}"))
    return handles


def _caption(frame: pd.DataFrame) -> str:
    """What a path shows, in one line."""
    return f"{_told(frame[frame['epoch'] == frame['epoch'].max()])}; each line holds {_HOLD[1]} of them"


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    _checked(frame)
    parts = []
    for (source, epoch), rows in frame.groupby(["source", "epoch"], sort=False, observed=True, dropna=False):
        across, up = _middle(rows)
        wrong = float((rows["s_neg"] >= rows["s_pos"]).mean())
        when = "" if rows["epoch"].isna().any() else f" after epoch {epoch:g}"
        parts.append(
            f"{source}{when}: median positive similarity {across:.2f}, median hardest negative {up:.2f}, "
            f"{wrong:.0%} of {len(rows)} queries rank the negative first"
        )
    return "Clouds of queries over positive and negative similarity. " + "; ".join(parts) + "."


def _cloud(ax: Axes, rows: pd.DataFrame, tint: str, shares: Sequence[float], dash: Any) -> None:
    x, y = rows["s_pos"].to_numpy(np.float64), rows["s_neg"].to_numpy(np.float64)
    if len(x) < FEW:
        ax.scatter(x, y, s=12, color=tint, edgecolors="white", linewidths=0.5, zorder=3)
        return
    across, up, height = _smoothed(x, y)
    at = map_coordinates(height, [np.interp(x, across, range(_BINS)), np.interp(y, up, range(_BINS))], order=1)
    levels = [min(float(np.quantile(at, 1 - share)), _PEAK * float(height.max())) for share in shares]
    widths = [0.9 if share > 0.5 else 1.8 for share in shares]
    keep = [place for place, level in enumerate(levels) if place == 0 or level > levels[place - 1]]
    lines = ax.contour(
        across, up, height.T, levels=[levels[k] for k in keep], colors=tint, linewidths=[widths[k] for k in keep],
        linestyles=dash, zorder=3,
    )  # fmt: skip
    lines.set_path_effects(_halo(max(widths)))


def _smoothed(x: _Points, y: _Points) -> tuple[_Points, _Points, _Points]:
    """Histogram of the points, smoothed by Scott's rule not less than the floor, so that lines have a region."""
    width = np.maximum(np.array([x.std(), y.std()]) * len(x) ** (-1 / 6), _FLOOR)
    low = np.array([x.min(), y.min()]) - 4 * width
    high = np.array([x.max(), y.max()]) + 4 * width
    step = (high - low) / _BINS
    height, across, up = np.histogram2d(x, y, bins=_BINS, range=list(zip(low, high, strict=True)))
    middle = [(edges[:-1] + edges[1:]) / 2 for edges in (across, up)]
    return middle[0], middle[1], gaussian_filter(height, width / step)


def _middle(rows: pd.DataFrame) -> tuple[float, float]:
    return float(rows["s_pos"].median()), float(rows["s_neg"].median())


def _mark(ax: Axes, points: Sequence[tuple[float, float]], tint: str, marker: str) -> None:
    across, up = zip(*points, strict=True)
    size = 0.45 * float(mpl.rcParams["font.size"]) ** 2
    ax.scatter(across, up, color=tint, marker=marker, s=size, edgecolors="white", linewidths=1, zorder=5)


def _halo(width: float) -> list[patheffects.AbstractPathEffect]:
    return [patheffects.withStroke(linewidth=width + 1.6, foreground="white", alpha=0.8)]


def _shades(number: int) -> list[str]:
    return [to_hex(shade) for shade in colormaps["plasma_r"](np.linspace(0.12, 1.0, number))]


def _told(rows: pd.DataFrame) -> str:
    size, split = rows["batch_size"].iloc[0], rows["split"].iloc[0]
    batch = "the whole split" if pd.isna(size) else f"batches of {size:g}"
    sides = "both directions" if rows["direction"].nunique() > 1 else str(rows["direction"].iloc[0])
    where = "" if pd.isna(split) else f", {split}"
    return f"{rows['source'].iloc[0]}{where}: {len(rows):,} queries, {sides}, hardest negatives of {batch}"


def _labelled(ax: Axes) -> Axes:
    ax.set(xlabel="positive similarity $s_+$", ylabel="hardest negative similarity $s_-$", aspect="equal")
    return ax


def _look(place: int) -> tuple[str, Any]:
    """Colour and dashes of the source at a place."""
    return _TINTS[place % len(_TINTS)], _DASHES[place // len(_TINTS) % len(_DASHES)]


def _some(number: int) -> list[int]:
    """Places of at most CLOUDS, evenly spaced, the first and the last among them."""
    return sorted({round(float(place)) for place in np.linspace(0, number - 1, min(number, CLOUDS))})


def _checked(frame: pd.DataFrame) -> None:
    style.require_columns(frame, COLUMNS, _WHAT)
    if not np.isfinite(frame[["s_pos", "s_neg"]].to_numpy(dtype=np.float64)).all():
        raise InputError(f"similarities of {_WHAT} must be finite; got NaN or infinity. Leave those queries out")
