"""Where in the ranking does the weight lie: by rank of the negative, by rank of the positive, by difference?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import curve_lines, directions, labels, log_axis, naming, style

COLUMNS = ("source", "objective", "direction", "statistic", "x", "mean")
PANELS = {  # statistic -> horizontal axis
    "candidate_weight": "rank of the negative",
    "query_weight": "rank R of the positive",
    "difference_weight": "D = negative − positive",
}
_NAME = "by_rank"
_HEADLINE = "Where in the ranking the weight lies"
_VERTICAL = "mean weight, of the largest"
_SMALL = 1e-3  # of the largest weight: the lowest that a logarithmic axis shows, and the end of D
_THIN = 0.7  # width of a fitted line
_FIRST = 2  # rank from which on the exponent is fitted
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None, panel: str = "difference_weight") -> Axes:
    """Where is the weight of a negative or of a query largest? One panel, see `draw_many`.

    Args:
        frame: columns COLUMNS, as `lossscope probe by-rank --curve FILE.csv` writes them.
        ax: axes to draw on; None: new ones.
        panel: `candidate_weight`, `query_weight` or `difference_weight`.
    """
    if panel not in PANELS:
        raise InputError(f"panel must be one of {', '.join(PANELS)}; got {panel!r}")
    rows = _valid_rows(frame)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE)
    colours, looks = _looks(rows)
    for label, direction, line in _lines(rows):
        x, y = _curve(line, panel)
        if len(x):
            dashes, name = looks[direction].dashes, f"{labels.label_text(label)} {direction}"
            marker = "" if panel == "difference_weight" else "."
            ax.plot(x, y / y.max(), color=colours[label], linestyle=dashes, marker=marker, label=name)
        if panel == "query_weight" and (fit := _fit(line)) is not None:
            ax.plot(fit[0], fit[1] / y.max(), color=colours[label], linestyle=dashes, linewidth=_THIN)
    _scale(ax, rows, panel)
    ax.set(xlabel=PANELS[panel], ylabel=_VERTICAL)
    if in_new_figure:
        naming.legend_below(ax.figure, curve_lines.handles(colours, looks))  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Where in the ranking does the weight lie? Three panels; each line is divided by its largest value.

    Left: mean weight of a negative by its rank, 1 the hardest. Middle: mean weight of a query by the rank of its
    positive, in bins 1, 2, 3-4, 5-8, ..., each at its geometric middle; the thin straight line is R to the power of
    the exponent, fitted to queries from R = 2 on. Right: mean weight of a negative by D, its similarity less that of
    the positive; the vertical line is D = 0. Solid: image to text; dashed: text to image.

    Args:
        frame: as for `draw`.
    """
    rows = _valid_rows(frame)
    fig = style.set_headline(style.new_figure(width=2.0, height=0.75), _HEADLINE)
    axes = fig.subplots(1, len(PANELS), squeeze=False)[0]
    for ax, panel in zip(axes, PANELS, strict=True):
        draw(frame, ax, panel)
        ax.set_ylabel(_VERTICAL if ax is axes[0] else "")
    handles = curve_lines.handles(*_looks(rows))
    if any(_fit(line) is not None for _, _, line in _lines(rows)):
        handles.append(Line2D([], [], color="0.35", linewidth=_THIN, label="R to the power of the exponent"))
    naming.legend_below(fig, handles)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for label, direction, line in _lines(_valid_rows(frame)):
        rank, _ = _largest(line, "candidate_weight")
        numbers = [f"negatives weigh most at rank {rank:g}"]
        exponent, ridge = _single(line, "exponent"), _single(line, "ridge")
        numbers += [f"the weight of a query follows R to the power {exponent:.2f}"] if np.isfinite(exponent) else []
        numbers += [f"the weight is largest at D = {ridge:.2g}"] if np.isfinite(ridge) else []
        parts.append(f"{labels.in_words(label)} {direction}: {', '.join(numbers)}")
    return "Mean weight by rank of the negative, by rank of the positive, and by difference. " + "; ".join(parts) + "."


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a number, with labels. Raises InputError for other columns or a line without weight."""
    style.require_rows(frame, COLUMNS, _NAME)
    directions.require_directions(frame)
    rows = curve_lines.with_labels(frame.dropna(subset=["mean"]))
    weighed = rows[(rows["statistic"] == "candidate_weight") & (rows["mean"] > 0)]
    if weighed.empty:
        raise InputError(f"frame of {_NAME} must have a weight above 0; got none. The probe found no gradient")
    return rows


def _looks(rows: pd.DataFrame) -> tuple[dict[str, str], dict[str, directions.DirectionStyle]]:
    """Return the colour of each label, and the look of each direction."""
    return curve_lines.colours(list(map(str, rows["label"].unique()))), directions.styles(rows)


def _lines(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield label, direction and rows of each line."""
    for (label, direction), line in rows.groupby(["label", "direction"], sort=False, observed=True):
        yield str(label), str(direction), line


def _curve(line: pd.DataFrame, statistic: str) -> tuple[_Values, _Values]:
    """Return the points and numbers of a curve; none without weight."""
    points = line[line["statistic"] == statistic].sort_values("x")
    x, y = points["x"].to_numpy(np.float64), points["mean"].to_numpy(np.float64)
    x = x if statistic == "difference_weight" else _middle(x)
    return (x, y) if len(y) and y.max() > 0 else (x[:0], y[:0])


def _middle(last: _Values) -> _Values:
    """Return the geometric middle of the bins 1, 2, 3-4, 5-8, ... that end at these ranks."""
    middle: _Values = np.sqrt(np.where(last < _FIRST, 1.0, last / 2 + 1) * last)
    return middle


def _single(line: pd.DataFrame, statistic: str) -> float:
    """Return a single number; NaN where the line has none."""
    values = line.loc[line["statistic"] == statistic, "mean"].to_numpy(np.float64)
    return float(values[0]) if len(values) else float("nan")


def _largest(line: pd.DataFrame, statistic: str) -> tuple[float, float]:
    """Return the point of the largest number of a curve, and the number."""
    x, y = _curve(line, statistic)
    return (float(x[y.argmax()]), float(y.max())) if len(x) else (float("nan"), 0.0)


def _fit(line: pd.DataFrame) -> tuple[_Values, _Values] | None:
    """Return the ends of the line R^exponent, as high as the means of the bins it was fitted to; None without one."""
    exponent, (x, y) = _single(line, "exponent"), _curve(line, "query_weight")
    shares = line[line["statistic"] == "query_share"].sort_values("x")
    weight_of = dict(zip(_middle(shares["x"].to_numpy(np.float64)), shares["mean"], strict=True))
    used = (x >= _FIRST) & (y > 0)
    if not np.isfinite(exponent) or not used.any():
        return None
    x, y = x[used], y[used]
    weights = [float(weight_of.get(middle, 0.0)) for middle in x]
    if not sum(weights) > 0:
        return None
    level = float(np.average(np.log(y) - exponent * np.log(x), weights=weights))
    ends = x[[0, -1]]
    return ends, np.exp(level) * ends**exponent


def _scale(ax: Axes, rows: pd.DataFrame, panel: str) -> None:
    """Show the range of ranks or differences, and weights down to a thousandth of the largest."""
    curves = [_curve(line, panel) for _, _, line in _lines(rows)]
    shown = [(x, y / y.max()) for x, y in curves if len(x)]
    if panel == "difference_weight":
        far = np.concatenate([x[y > _SMALL] for x, y in shown] or [np.zeros(1)])  # small batches have no full bin
        ax.set_xlim(float(far.min()) - 0.1, float(far.max()) + 0.1)
        ax.set_ylim(-0.02, 1.05)
        ax.locator_params(axis="x", nbins=4)
        ax.axvline(0, color="0.75", linewidth=0.8, zorder=0)
        return
    last = max(2.0, *(float(x.max()) for x, _ in shown))
    log_axis.set_log(ax, "x", 1, last)
    ax.set_xlim(0.9, last * 1.15)
    least = max(min(float(y[y > 0].min()) for _, y in shown), _SMALL)
    if log_axis.is_wide(least, 1):
        log_axis.set_log(ax, "y", least, 1)
        ax.set_ylim(least / 1.3, 1.3)
    else:
        ax.set_ylim(0, 1.05)
