"""Where on the triplet diagram are a model's queries, and how do they move in training?"""

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

from . import labels, naming, style

COLUMNS = ("source", "split", "epoch", "direction", "s_pos", "s_neg", "batch_size")
SHARES = (0.9, 0.5)  # of the queries, inside the outer and the inner contour
_SHARE_NAMES = ("90 %", "50 %")
FEW = 50  # queries; fewer are drawn as dots
NAMED = 12  # epochs of a path that are in its legend; of more, some evenly spaced are, but all are drawn
_BINS = 96
_PEAK = 0.98  # of the density's maximum: a contour's level is at most this, so that points in one place have one
_FLOOR = 0.004  # similarity: a cloud that is a line or a point is smoothed by at least this
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#882255", "#332288")
_HEADLINES = {  # does it show several epochs?
    False: "Where the queries of a model are on the field of weights",
    True: "How the queries of a model move over the field of weights",
}
_HEADLINE = "Similarity of the positive and of the hardest negative of queries"
_NAME = "overlay"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Where are the queries of each source, on the axes of a triplet field?

    Horizontal: positive similarity. Vertical: similarity of the hardest negative of a batch, whose size the legend
    states. The thick contour holds half of the queries of both directions, the thin one 90 %: those where a smoothed
    histogram is highest. The cross is at the medians. Fewer than 50 queries are dots. Queries below the diagonal are
    ranked correctly; the value of the field at the cloud is what this loss does to these data.

    Args:
        frame: columns COLUMNS, one epoch of each source.
        ax: axes of a triplet field; None: new ones.
    """
    _check(frame)
    if (frame.groupby("source", observed=True)["epoch"].nunique() > 1).any():
        raise InputError(f"{_NAME}.draw must get one epoch of each source; got several. Use {_NAME}.draw_path")
    ax = _with_axis_labels(style.axes_or_new(None, _HEADLINE)) if ax is None else ax
    for index, (_, rows) in enumerate(frame.groupby("source", sort=False, observed=True)):
        colour, dashes = _colour_and_dashes(index)
        _draw_cloud(ax, rows, colour, SHARES, dashes)
        _draw_marker(ax, _medians(rows), colour, "X")
    return ax


def draw_path(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How does the cloud of one run move in training? A contour around half of the queries of an epoch, light to dark.

    The medians are joined in the order of the epochs. A circle is at the first, a square at the last checkpoint. A path
    that climbs along the diagonal pulls everything together; one that bends to the right learns to rank.

    Args:
        frame: columns COLUMNS, one source, several epochs.
        ax: axes of a triplet field; None: new ones.
    """
    _check(frame)
    style.single_value(frame, "source", f"{_NAME}.draw_path")
    ax = _with_axis_labels(style.axes_or_new(None, _HEADLINE)) if ax is None else ax
    epochs = sorted(frame["epoch"].dropna().unique())
    if len(epochs) < 2:
        raise InputError(f"a path must have two epochs or more; got {len(epochs)}. Use {_NAME}.draw for one")
    colours = colour_sequence(len(epochs))
    clouds = [frame[frame["epoch"] == epoch] for epoch in epochs]
    for cloud, colour in zip(clouds, colours, strict=True):
        _draw_cloud(ax, cloud, colour, SHARES[1:], "-")
    medians = [_medians(rows) for rows in clouds]
    x, y = zip(*medians, strict=True)
    ax.plot(x, y, color="black", linewidth=1, path_effects=_white_edge(1), zorder=4, label="medians")
    _draw_marker(ax, medians[0], colours[0], "o")
    _draw_marker(ax, medians[-1], colours[-1], "s")
    return ax


def legend(fig: Figure, frame: pd.DataFrame) -> None:
    """Add a legend under the figure, which grows by it: what the contours hold, sources, batch sizes, queries."""
    _check(frame)
    style.set_headline(fig, _HEADLINES[frame["epoch"].nunique() > 1])
    if frame["epoch"].nunique() > 1:
        last = frame[frame["epoch"] == frame["epoch"].max()]
        span = f"epochs {frame['epoch'].min():g} to {frame['epoch'].max():g}, light to dark"
        caption = f"{_describe_source(last, _names(frame))}; a line an epoch, {span}, holds {_SHARE_NAMES[1]} of them"
        naming.legend_below(fig, _epoch_handles(frame), caption)
    else:
        caption = f"Lines hold {_SHARE_NAMES[1]} and {_SHARE_NAMES[0]} of the queries"
        naming.legend_below(fig, _source_handles(frame), caption)


def _source_handles(frame: pd.DataFrame) -> list[Line2D]:
    handles = []
    for index, (_, rows) in enumerate(frame.groupby("source", sort=False, observed=True)):
        colour, dashes = _colour_and_dashes(index)
        handles.append(
            Line2D([], [], color=colour, linestyle=dashes, marker="X", label=_describe_source(rows, _names(frame)))
        )
    return handles


def _epoch_handles(frame: pd.DataFrame) -> list[Line2D]:
    epochs = sorted(frame["epoch"].dropna().unique())
    colours, handles = colour_sequence(len(epochs)), []
    for index in evenly_spaced(len(epochs)):
        marker = "o" if index == 0 else "s" if index == len(epochs) - 1 else ""
        handles.append(Line2D([], [], color=colours[index], marker=marker, label=f"epoch {epochs[index]:g}"))
    return handles


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    _check(frame)
    parts, names = [], _names(frame)
    for (source, epoch), rows in frame.groupby(["source", "epoch"], sort=False, observed=True, dropna=False):
        s_pos, s_neg = _medians(rows)
        wrong = float((rows["s_neg"] >= rows["s_pos"]).mean())
        when = "" if rows["epoch"].isna().any() else f" after epoch {epoch:g}"
        parts.append(
            f"{labels.in_words(names[str(source)])}{when}: median positive similarity {s_pos:.2f}, "
            f"median hardest negative {s_neg:.2f}, "
            f"{wrong:.0%} of {len(rows)} queries rank the negative first"
        )
    return "Clouds of queries over positive and negative similarity. " + "; ".join(parts) + "."


def _draw_cloud(ax: Axes, rows: pd.DataFrame, colour: str, shares: Sequence[float], dashes: Any) -> None:
    """Draw contours that hold these shares of the queries, in decreasing order, or dots if there are few."""
    x, y = rows["s_pos"].to_numpy(np.float64), rows["s_neg"].to_numpy(np.float64)
    if len(x) < FEW:
        ax.scatter(x, y, s=12, color=colour, edgecolors="white", linewidths=0.5, zorder=3)
        return
    grid_x, grid_y, density = _density(x, y)
    at_queries = map_coordinates(
        density, [np.interp(x, grid_x, range(_BINS)), np.interp(y, grid_y, range(_BINS))], order=1
    )
    levels = [min(float(np.quantile(at_queries, 1 - share)), _PEAK * float(density.max())) for share in shares]
    widths = [0.9 if share > 0.5 else 1.8 for share in shares]
    keep = [index for index, level in enumerate(levels) if index == 0 or level > levels[index - 1]]
    contours = ax.contour(
        grid_x, grid_y, density.T, levels=[levels[k] for k in keep], colors=colour,
        linewidths=[widths[k] for k in keep], linestyles=dashes, zorder=3,
    )  # fmt: skip
    contours.set_path_effects(_white_edge(max(widths)))


def _density(x: _Values, y: _Values) -> tuple[_Values, _Values, _Values]:
    """Return a histogram of the points, smoothed by Scott's rule but at least by the floor, and its bin centres.

    A kernel density would take a kernel a query, and has none for points on a line or in one place.
    """
    width = np.maximum(np.array([x.std(), y.std()]) * len(x) ** (-1 / 6), _FLOOR)
    low = np.array([x.min(), y.min()]) - 4 * width
    high = np.array([x.max(), y.max()]) + 4 * width
    step = (high - low) / _BINS
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_BINS, range=list(zip(low, high, strict=True)))
    centres = [(edges[:-1] + edges[1:]) / 2 for edges in (x_edges, y_edges)]
    return centres[0], centres[1], gaussian_filter(counts, width / step)


def _medians(rows: pd.DataFrame) -> tuple[float, float]:
    return float(rows["s_pos"].median()), float(rows["s_neg"].median())


def _draw_marker(ax: Axes, point: tuple[float, float], colour: str, marker: str) -> None:
    size = 0.45 * float(mpl.rcParams["font.size"]) ** 2
    ax.scatter(*point, color=colour, marker=marker, s=size, edgecolors="white", linewidths=1, zorder=5)


def _white_edge(width: float) -> list[patheffects.AbstractPathEffect]:
    return [patheffects.withStroke(linewidth=width + 1.6, foreground="white", alpha=0.8)]


def colour_sequence(number: int) -> list[str]:
    """Return the colours of epochs in their order, light to dark."""
    return [to_hex(colour) for colour in colormaps["plasma_r"](np.linspace(0.12, 1.0, number))]


def _names(frame: pd.DataFrame) -> dict[str, str]:
    return labels.shortest_names(frame["source"].unique())


def _describe_source(rows: pd.DataFrame, names: dict[str, str]) -> str:
    """Return the name, split, number of queries, direction and batch size of a source."""
    size, split = rows["batch_size"].iloc[0], rows["split"].iloc[0]
    batch = "the whole split" if pd.isna(size) else f"batches of {size:g}"
    directions = "both directions" if rows["direction"].nunique() > 1 else str(rows["direction"].iloc[0])
    of_split = "" if pd.isna(split) else f", {labels.plain_text(str(split))}"
    name = labels.label_text(names[str(rows["source"].iloc[0])])
    return f"{name}{of_split}: {len(rows):,} queries, {directions}, hardest negatives of {batch}"


def _with_axis_labels(ax: Axes) -> Axes:
    ax.set(xlabel="positive similarity $s_+$", ylabel="hardest negative similarity $s_-$", aspect="equal")
    return ax


def _colour_and_dashes(index: int) -> tuple[str, Any]:
    """Return the colour and dashes of the source of this index."""
    return _COLOURS[index % len(_COLOURS)], _DASHES[index // len(_COLOURS) % len(_DASHES)]


def evenly_spaced(number: int) -> list[int]:
    """Return 0..number-1, at most NAMED of them, evenly spaced, with the first and the last."""
    return sorted({round(float(index)) for index in np.linspace(0, number - 1, min(number, NAMED))})


def _check(frame: pd.DataFrame) -> None:
    """Raise InputError unless the frame has all columns and finite similarities."""
    style.require_rows(frame, COLUMNS, _NAME)
    if not np.isfinite(frame[["s_pos", "s_neg"]].to_numpy(dtype=np.float64)).all():
        raise InputError(f"similarities of {_NAME} must be finite; got NaN or infinity. Leave those queries out")
