"""How much does retrieval depend on a hyper-parameter, and where are other objectives? (Unified loss, Figure 5)"""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("parameter", "value", "seed", "rsum")
REFERENCE = ("label", "rsum")
_TINT = "#009E73"
_WIDE = 8  # times the smallest value: further, and the axis is logarithmic
_WHAT = "sensitivity"


def draw(frame: pd.DataFrame, ax: Axes | None = None, reference: pd.DataFrame | None = None) -> Axes:
    """rsum against the values of one hyper-parameter; the others are held fixed.

    A mark is the mean over seeds, its bar one sample standard deviation (ddof 1), none for one seed; faint marks are
    the seeds. Each horizontal line is another objective at its own setting (mean over the rows of its label, a band of
    one sample standard deviation): where the curve is above it, this one is the better choice. One panel of Figure 5 of
    the Unified-loss paper. Columns: see `COLUMNS`, one parameter; of reference: see `REFERENCE`.
    """
    known = _known(frame)
    parameter = style.single_value(known, "parameter", _WHAT)
    ax = style.axes_or_new(ax)
    _name(ax, _paint(ax, known, parameter, reference))
    return ax


def _paint(
    ax: Axes, known: pd.DataFrame, parameter: str, reference: pd.DataFrame | None
) -> list[tuple[str, float, str]]:
    """The curve, and the lines of the others; their names, levels and colours."""
    ends = _lines(ax, reference)
    means = known.groupby("value")["rsum"].agg(["mean", "std", "size"])
    size = 0.5 * float(mpl.rcParams["font.size"])
    if (means["size"] > 1).any():
        ax.scatter(known["value"], known["rsum"], color=_TINT, s=size**2 / 2, alpha=0.35, linewidths=0, zorder=2)
    values = means.index.to_numpy(float)
    bars = means["std"].to_numpy(float) if (means["size"] > 1).any() else None
    ax.errorbar(
        values, means["mean"].to_numpy(float), yerr=bars, color=_TINT, marker="o", markersize=size, capsize=2,
        elinewidth=1, zorder=3, label=parameter,
    )  # fmt: skip
    if values.min() > 0 and values.max() / values.min() > _WIDE:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(values if len(values) <= 8 else values[:: -(-len(values) // 8)])
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.margins(x=0.06)
    ax.set(xlabel=parameter, ylabel="rsum")
    return ends


def _name(ax: Axes, ends: list[tuple[str, float, str]]) -> None:
    if ends:
        names, levels, tints = zip(*ends, strict=True)
        naming.end_labels(ax, [float(ax.get_xlim()[1])] * len(ends), levels, names, tints)


def draw_many(frame: pd.DataFrame, reference: pd.DataFrame | None = None) -> Figure:
    """A panel per hyper-parameter on one scale of rsum: (a) margin, (b) gamma. Read as `draw`."""
    known = _known(frame)
    parameters = list(known["parameter"].unique())
    fig = style.new_figure(width=0.15 + 0.85 * len(parameters), height=0.85)
    panels: list[Axes] = []
    ends: list[tuple[str, float, str]] = []
    for place, parameter in enumerate(parameters):
        ax = fig.add_subplot(1, len(parameters), place + 1, sharey=panels[0] if panels else None)
        ends = _paint(ax, known[known["parameter"] == parameter], str(parameter), reference)
        ax.set_title(f"({chr(97 + place)})")
        panels.append(ax)
    for ax in panels[1:]:
        ax.set_ylabel("")
        ax.tick_params(labelleft=False)
    _name(panels[-1], ends)
    return fig


def alt(frame: pd.DataFrame, reference: pd.DataFrame | None = None) -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for parameter, rows in _known(frame).groupby("parameter", sort=False, observed=True):
        means = rows.groupby("value")["rsum"].mean()
        each = ", ".join(f"{rsum:.1f} at {value:g}" for value, rsum in means.items())
        parts.append(f"{parameter}: {each}; best {means.idxmax():g}")
    text = "Rsum against hyper-parameters, means over seeds. " + ". ".join(parts) + "."
    if reference is not None:
        others = _reference(reference).groupby("label", sort=False)["rsum"].mean()
        text += " For comparison " + ", ".join(f"{label} {rsum:.1f}" for label, rsum in others.items()) + "."
    return text


def _lines(ax: Axes, reference: pd.DataFrame | None) -> list[tuple[str, float, str]]:
    """Draw the others; name, level and colour of each."""
    if reference is None:
        return []
    grouped = _reference(reference).groupby("label", sort=False, observed=True)["rsum"]
    names = [str(label) for label, _ in grouped]
    tints = style.colours(names)
    found = []
    for label, rows in grouped:
        level, tint = float(rows.mean()), tints[str(label)]
        ax.axhline(level, color=tint, linestyle=(0, (5, 2)), linewidth=1, zorder=1, label=str(label))
        if len(rows) > 1:
            ax.axhspan(level - float(rows.std()), level + float(rows.std()), color=tint, alpha=0.12, linewidth=0)
        found.append((str(label), level, tint))
    return found


def _reference(reference: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(reference, REFERENCE, f"{_WHAT}, reference")
    return reference.dropna(subset=["rsum"])


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    known = frame.dropna(subset=["rsum"])
    if known.empty:
        raise InputError(f"frame of {_WHAT} must have a known rsum; got none. Evaluate the runs")
    if known.duplicated(["parameter", "value", "seed"]).any():
        raise InputError(
            f"frame of {_WHAT} must hold each value and seed once; got some twice. Draw one study at a time"
        )
    return known
