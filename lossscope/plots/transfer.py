"""Is a count of the loss or of the model? Every loss counted at the optimum of every loss, as a heat map."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lossscope.errors import InputError
from lossscope.stats.transfer import effect_shares

from . import labels, naming, style

COLUMNS = ("objective", "trained_with", "direction", "statistic", "mean")
_NAME = "transfer"
_HEADLINE = "Is a count of the loss or of the model?"
_Matrix = npt.NDArray[np.float64]
_FEW = 4  # losses whose names stand upright below the columns
_PALE = 0.55  # of the colour scale, from which white is more readable than black


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """What does each loss count at the optimum of each loss, in one direction?

    Rows are counted losses, columns the losses that models were trained with; a frame is a loss at its own optimum,
    which papers print. Colours are logarithmic from the smallest to the largest number; where rows are alike the model
    decides, where columns are alike the loss. The title says which share of the differences is of each.

    Args:
        frame: columns COLUMNS, of one statistic and one direction.
        ax: axes to draw on; None: new ones.
    """
    rows = _check(frame)
    style.single_value(rows, "statistic", _NAME)
    style.single_value(rows, "direction", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE)
    _draw_panel(ax, rows, True, 30)
    if in_new_figure:
        naming.fit_height(ax.figure)  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Do all numbers say the same? A panel for each statistic and direction, as `draw`.

    Args:
        frame: columns COLUMNS.
    """
    panels = list(_check(frame).groupby(["statistic", "direction"], sort=False, observed=True))
    per_row = min(2, len(panels))
    n_rows = math.ceil(len(panels) / per_row)
    losses = frame["objective"].nunique()
    fig = style.set_headline(style.new_figure(style.PAGE, (0.42 + 0.13 * losses) * n_rows + 0.25), _HEADLINE)
    for index, (_, rows) in enumerate(panels):
        _draw_panel(fig.add_subplot(n_rows, per_row, index + 1), rows, index % per_row == 0, 60)
    naming.fit_height(fig)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = [
        f"{row['statistic']} {row['direction']}: {row['of_loss']:.0%} of the differences are of the loss, "
        f"{row['of_model']:.0%} of the model, {row['of_both']:.0%} of both"
        for row in effect_shares(_check(frame)).to_dict("records")
    ]
    return f"Heat maps of counted losses against the losses that models were trained with. {'; '.join(parts)}."


def _draw_panel(ax: Axes, rows: pd.DataFrame, names_losses: bool, width: int) -> None:
    table = rows.pivot_table(index="objective", columns="trained_with", values="mean", sort=False)
    order = list(map(str, table.index)), list(map(str, table.columns))
    values = table.to_numpy(float)
    shades = _shades(values)
    ax.imshow(np.ma.masked_invalid(shades), cmap=colormaps["Blues"].with_extremes(bad="0.8"), vmin=0, vmax=1.2)
    ax.set_aspect("auto")
    for i, j in np.ndindex(values.shape):
        if not math.isnan(values[i, j]):
            colour = "white" if shades[i, j] > _PALE else "black"
            ax.text(j, i, f"{values[i, j]:.3g}", ha="center", va="center", fontsize=style.small(), color=colour)
        if table.index[i] == table.columns[j]:
            ax.add_patch(
                Rectangle(
                    (j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.2, zorder=3, clip_on=False
                )
            )
    words = [
        [style.wrap_words(labels.label_text(name), letters) for name in names]
        for names, letters in zip(order, (20, 36 // len(order[1]) if len(order[1]) <= _FEW else 24), strict=True)
    ]
    ax.set_yticks(range(len(order[0])), words[0] if names_losses else [""] * len(order[0]))
    ax.set_xticks(range(len(order[1])), words[1], rotation=0 if len(order[1]) <= _FEW else 90)
    ax.tick_params(length=0, labelsize=style.small())
    ax.set_xlabel("model trained with")
    if names_losses:
        ax.set_ylabel("counted loss")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(_title(rows, width))


def _shades(values: _Matrix) -> _Matrix:
    """Return 0..1 from the smallest to the largest number, logarithmic where all are above 0."""
    scaled = np.log(values) if (values[~np.isnan(values)] > 0).all() else values
    low, high = np.nanmin(scaled), np.nanmax(scaled)
    return (scaled - low) / (high - low) if high > low else np.zeros_like(scaled)


def _title(rows: pd.DataFrame, width: int) -> str:
    statistic = str(rows["statistic"].iloc[0])
    words = "share of the weight above ε" if statistic == "share_above" else labels.statistic_in_words(statistic)
    name = style.wrap_words(f"{words}, {rows['direction'].iloc[0]}", width)
    shares = effect_shares(rows)
    if shares.empty or shares["of_loss"].isna().any():
        return name
    row = shares.iloc[0]
    return f"{name}\nloss {row['of_loss']:.0%}, model {row['of_model']:.0%}, both {row['of_both']:.0%}"


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raises InputError unless each loss is there once for each model, statistic and direction."""
    style.require_rows(frame, COLUMNS, _NAME)
    if frame.duplicated(["objective", "trained_with", "direction", "statistic"]).any():
        raise InputError(
            f"frame of {_NAME} must have each counted loss once for each training loss, statistic and direction; got "
            "some twice. Use the rows of one `lossscope analyse transfer`"
        )
    return frame
