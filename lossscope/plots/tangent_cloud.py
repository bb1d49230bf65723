"""Does what turns the hardest negative vanish as it comes close to its query? (Unified loss, Figure 2 and eq. 12)"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import labels, naming, overlay, style

COLUMNS = ("objective", "source", "epoch", "similarity", "weight", "tangent")
POINTS = 1500  # of an epoch, at most: evenly spaced ones of more
_LINE = 200  # points of the envelope
_ROUNDING = 1e-5  # by how much a similarity may be above 1
_ENVELOPE = r"envelope: largest weight $\times\ \sqrt{1-s^2}$"
_HEADLINE = "Gradient that turns the hardest negative of a query, at its similarity"
_Y = "tangent gradient of the negative"
_NAME = "tangent_cloud"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How strongly does a loss turn the hardest negative of each query, close to it and far away?

    Horizontal: similarity s of a query v and its hardest negative t. Vertical: |dL/dt| sin θ(v, t), the part of its
    gradient that turns t, of this query alone. The line is the largest weight times sin θ = √(1 − s²): no point is
    above it, and it is 0 at s = 1, whatever the weight. Epochs go from light to dark, a square at the medians of each.
    Points at the right end are negatives that the loss should push most and cannot turn: the vanishing gradient of the
    Unified-loss paper, eq. (12). Points at 0 elsewhere have no weight.

    Args:
        frame: columns COLUMNS, of one objective and one source; epoch is NaN where there is none.
        ax: axes to draw on; None: new ones.
    """
    style.single_value(check(frame), "source", _NAME)
    objective = style.single_value(frame, "objective", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE)
    _draw_panel(ax, frame, _epochs(frame))
    ax.set(xlabel="similarity $s$ of the hardest negative", ylabel=_Y)
    ax.set_title(_title(objective, frame, 34))
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(frame))  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do losses differ in the negatives that they turn? A panel for each loss and source, as `draw`.

    Args:
        frame: columns COLUMNS.
    """
    names = labels.shortest_names(check(frame)["source"].unique())
    panels = list(frame.groupby(["source", "objective"], sort=False, observed=True))
    per_row = style.panels_per_row(len(panels))
    n_rows = math.ceil(len(panels) / per_row)
    fig = style.set_headline(style.new_figure(0.25 + 0.65 * per_row, 0.9 * n_rows), _HEADLINE)
    titles, epochs = [], _epochs(frame)
    for index, ((source, objective), rows) in enumerate(panels):
        first = fig.axes[0] if index else None
        ax = fig.add_subplot(n_rows, per_row, index + 1, sharex=first)
        _draw_panel(ax, rows, epochs)
        ax.set_xlabel("similarity $s$ of the hardest negative" if index + per_row >= len(panels) else "")
        ax.set_ylabel(_Y if index % per_row == 0 else "")
        of_source = f", {labels.plain_text(names[str(source)])}" if len(names) > 1 else ""
        titles.append(_title(f"{objective}", rows, 24, of_source))
    naming.title_panels(fig, titles, per_row)
    naming.legend_below(fig, _handles(frame))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts, names = [], labels.shortest_names(check(frame)["source"].unique())
    for (source, objective, epoch), rows in frame.groupby(
        ["source", "objective", "epoch"], sort=False, observed=True, dropna=False
    ):
        when = "" if rows["epoch"].isna().any() else f" after epoch {epoch:g}"
        parts.append(
            f"{labels.in_words(str(objective))} on {names[str(source)]}{when}: median {rows['tangent'].median():.3g} "
            f"at median similarity {rows['similarity'].median():.2f}; {float((rows['weight'] == 0).mean()):.0%} of "
            f"{len(rows)} queries give their hardest negative no weight"
        )
    return "Tangent gradient of the hardest negative of queries against its similarity. " + ". ".join(parts) + "."


def _draw_panel(ax: Axes, frame: pd.DataFrame, epochs: list[float]) -> None:
    largest = float(frame["weight"].max())
    low = min(0.0, float(frame["similarity"].min()))
    s = 1 - (1 - low) * np.linspace(0, 1, _LINE) ** 2  # close together near 1, where the root is steep
    ax.plot(s, largest * np.sqrt(1 - s**2), color="black", linewidth=1, zorder=2, label="envelope")
    for epoch, colour in zip(epochs, overlay.colour_sequence(len(epochs)), strict=True):
        rows = frame[frame["epoch"].isna()] if math.isnan(epoch) else frame[frame["epoch"] == epoch]
        if rows.empty:
            continue
        shown = rows.iloc[np.unique(np.linspace(0, len(rows) - 1, min(POINTS, len(rows))).round().astype(int))]
        ax.scatter(
            shown["similarity"], shown["tangent"], s=5, color=colour, alpha=0.4, linewidths=0, zorder=3,
            label=_epoch_in_words(epoch), rasterized=True,
        )  # fmt: skip
        ax.plot(
            rows["similarity"].median(), rows["tangent"].median(), marker="s", color=colour, markersize=6,
            markeredgecolor="white", zorder=4,
        )  # fmt: skip
    ax.set(xlim=(low - 0.02, 1.02), ylim=(-0.03 * (largest or 1.0), None))
    ax.locator_params(nbins=5)


def _epochs(frame: pd.DataFrame) -> list[float]:
    """Return the epochs in their order; NaN, without an epoch, first."""
    known = sorted(map(float, frame["epoch"].dropna().unique()))
    return [*([math.nan] if frame["epoch"].isna().any() else []), *known]


def _epoch_in_words(epoch: float) -> str:
    return "queries" if math.isnan(epoch) else f"epoch {epoch:g}"


def _handles(frame: pd.DataFrame) -> list[Artist]:
    epochs = _epochs(frame)
    colours = overlay.colour_sequence(len(epochs))
    named = [*overlay.evenly_spaced(len(epochs))]
    return [
        Line2D([], [], color="black", linewidth=1, label=_ENVELOPE),
        *(Line2D([], [], color=colours[k], marker="s", linestyle="", label=_epoch_in_words(epochs[k])) for k in named),
    ]


def _title(objective: str, rows: pd.DataFrame, width: int, of_source: str = "") -> str:
    name = style.wrap_words(f"{labels.label_text(objective)}{of_source}", width)
    return f"{name}\nlargest weight {float(rows['weight'].max()):.3g}"


def check(frame: pd.DataFrame, picture: str = _NAME) -> pd.DataFrame:
    """Return the frame. Raises InputError unless it has all columns, cosines, and weights and norms >= 0."""
    style.require_rows(frame, COLUMNS, picture)
    numbers = frame[["similarity", "weight", "tangent"]].to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all() or (np.abs(numbers[:, 0]) > 1 + _ROUNDING).any() or (numbers[:, 1:] < 0).any():
        raise InputError(
            f"frame of {picture} must have similarities in -1..1, weights and norms >= 0; got others. Use the columns "
            "of the probe tangent:of=hardest"
        )
    return frame
