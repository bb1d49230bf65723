"""How many samples carry the gradient of a query, for every threshold at once? (C(eps), which COCOS fixes at one)"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from lossscope.errors import InputError

from . import curve_lines, directions, labels, naming, style

COLUMNS = ("source", "objective", "direction", "eps", "mean")
_NAME = "eps_curve"


def draw(frame: pd.DataFrame, ax: Axes | None = None, at: float = 0.01) -> Axes:
    """Does the count depend on where the threshold is put?

    Horizontal: eps, logarithmic. Vertical: samples with a weight above it, the mean over all queries. A steep line
    means that the weights are similar, and any count between is an accident of eps; a flat one, that a few samples
    have all of the weight. Where two lines cross, the order of two losses depends on eps. Solid: image to text;
    dashed: text to image. Weights of different papers have different scales, so compare shapes across families, heights
    within one.

    Args:
        frame: columns COLUMNS; unknown counts are NaN.
        ax: axes to draw on; None: new ones.
        at: the eps of the paper, at which a thin line is drawn; 0 has no place on the axis and is not marked.
    """
    rows = _valid_rows(frame)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, "How many samples count, at every threshold on the weight")
    colours, looks = curve_lines.colours(list(map(str, rows["label"].unique()))), directions.styles(rows)
    for (label, direction), line in rows.groupby(["label", "direction"], sort=False, observed=True):
        line = line.sort_values("eps")
        ax.plot(
            line["eps"],
            line["mean"],
            color=colours[str(label)],
            linestyle=looks[str(direction)].dashes,
            label=f"{labels.label_text(str(label))} {direction}",
        )
    if at > 0:
        _mark_eps(ax, at)
    _scale(ax, rows, at)
    ax.set(xlabel="threshold ε on the weight", ylabel="samples above ε per query")
    handles = curve_lines.handles(colours, looks)
    if in_new_figure:
        naming.legend_below(ax.figure, handles)  # type: ignore[arg-type]
    else:
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
    return ax


def _mark_eps(ax: Axes, at: float) -> None:
    """Draw a thin line at an eps, and write its value."""
    ax.axvline(at, color="0.75", linewidth=0.8, zorder=0)
    ax.annotate(
        f"ε = {at:g}", (at, 1), (2, 0), xycoords=("data", "axes fraction"), textcoords="offset points", color="0.45",
        fontsize=style.small(), va="top",
    )  # fmt: skip


def alt(frame: pd.DataFrame, at: float = 0.01) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for (label, direction), line in _valid_rows(frame).groupby(["label", "direction"], sort=False, observed=True):
        nearest = line.iloc[(line["eps"] - at).abs().argmin()]
        parts.append(f"{labels.in_words(str(label))} {direction}: {nearest['mean']:.3g} at {nearest['eps']:.2g}")
    return "Samples per query with a weight above eps, against eps. " + "; ".join(parts) + "."


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a count above an eps > 0, with a label: the objective, and the source if there are several.

    Raises InputError for other columns or directions, or when no row is left.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    directions.require_directions(frame)
    rows = frame.dropna(subset=["mean"])
    rows = rows[rows["eps"] > 0]
    if rows.empty:
        raise InputError(
            f"frame of {_NAME} must have a count above an eps > 0; got none. The probe skipped every query"
        )
    return curve_lines.with_labels(rows)


def _scale(ax: Axes, rows: pd.DataFrame, at: float) -> None:
    """Show the range of eps in which counts change, and `at` if it is above 0; counts are logarithmic above 1."""
    largest = rows.groupby(["label", "direction"], observed=True)["mean"].transform("max")
    changing = rows.loc[(rows["mean"] > 0) & (rows["mean"] < 0.99 * largest), "eps"]
    shown = [*changing, *([at] if at > 0 else [])] or [*rows["eps"]]
    ax.set_xscale("log")
    ax.set_xlim(min(shown) / 3, max(shown) * 3)
    ax.set_yscale("symlog", linthresh=1, linscale=0.6)
    top = max(2.0, float(rows["mean"].max()) * 1.3)
    ticks = [0.0, *(base * 10.0**power for power in range(7) for base in (1, 3))]
    ax.set_yticks([tick for tick in ticks if tick <= top])
    ax.set_ylim(-0.05, top)
    ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()
