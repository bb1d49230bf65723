"""How much does retrieval depend on a hyper-parameter, and where are other objectives? (Unified loss, Figure 5)"""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError
from lossscope.io.scores import as_rsum, score_of

from . import labels, log_axis, naming, style

COLUMNS = ("parameter", "value", "seed", "rsum")
REFERENCE = ("label", "rsum")
_COLOUR = "#009E73"
_NAME = "sensitivity"
_End = tuple[str, float, str]  # name, level and colour of a horizontal line


def draw(frame: pd.DataFrame, ax: Axes | None = None, reference: pd.DataFrame | None = None) -> Axes:
    """How does rsum depend on one hyper-parameter, the others fixed?

    A mark is the mean over seeds, its bar one sample standard deviation (ddof 1), none for one seed; the faint marks
    are the seeds. Each horizontal line is another objective at its own setting: the mean over the rows of its label,
    with a band of one sample standard deviation. Where the curve is above it, this objective is better. One panel of
    Figure 5 of the Unified-loss paper.

    Args:
        frame: columns COLUMNS, of one parameter; `nDCG@10` may take the place of rsum.
        ax: axes to draw on; None: new ones.
        reference: columns REFERENCE, of the other objectives.
    """
    rows, score = _valid_rows(frame), score_of(frame.columns).name
    parameter = style.single_value(rows, "parameter", _NAME)
    ax = style.axes_or_new(ax, f"{score} against {labels.parameter_in_words(parameter)}; {_intervals(rows)}")
    _label_lines(ax, _draw_panel(ax, rows, parameter, reference, score))
    return ax


def _intervals(rows: pd.DataFrame) -> str:
    """Return what the bars are, with the number of seeds."""
    seeds = sorted(set(rows.groupby(["parameter", "value"])["seed"].nunique()))
    if seeds[-1] == 1:
        return "one seed each, so no intervals"
    number = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return f"means and sample standard deviations of {number} seeds"


def _draw_panel(ax: Axes, rows: pd.DataFrame, parameter: str, reference: pd.DataFrame | None, score: str) -> list[_End]:
    """Draw the curve and the lines of the other objectives; return what these are labelled with."""
    ends = _draw_reference(ax, reference)
    size = 0.5 * float(mpl.rcParams["font.size"])
    several = bool(rows.duplicated("value").any())
    if several:
        ax.scatter(rows["value"], rows["rsum"], color=_COLOUR, s=size**2 / 2, alpha=0.35, linewidths=0, zorder=2)
    sns.lineplot(
        rows, x="value", y="rsum", errorbar="sd" if several else None, err_style="bars",
        err_kws={"capsize": 2, "elinewidth": 1, "zorder": 3}, color=_COLOUR, marker="o", markersize=size,
        markeredgecolor=_COLOUR, zorder=3, label=parameter, legend=False, ax=ax,
    )  # fmt: skip
    values = sorted(map(float, rows["value"].unique()))
    if log_axis.is_wide(values[0], values[-1]):
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(values if len(values) <= 8 else values[:: -(-len(values) // 8)])
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.margins(x=0.06)
    ax.set(xlabel=labels.parameter_in_words(parameter), ylabel=score)
    return ends


def _label_lines(ax: Axes, ends: list[_End]) -> None:
    if ends:
        names, levels, colours = zip(*ends, strict=True)
        words = list(map(labels.label_text, names))
        naming.end_labels(ax, [float(ax.get_xlim()[1])] * len(ends), levels, words, colours)


def draw_many(frame: pd.DataFrame, reference: pd.DataFrame | None = None) -> Figure:
    """How does rsum depend on each hyper-parameter? A panel each, (a), (b), ..., on one scale of rsum, as `draw`."""
    rows, score = _valid_rows(frame), score_of(frame.columns).name
    parameters = list(rows["parameter"].unique())
    fig = style.new_figure(width=0.15 + 0.85 * len(parameters), height=0.85)
    style.set_headline(fig, f"{score} against hyper-parameters of the loss; {_intervals(rows)}")
    panels: list[Axes] = []
    ends: list[_End] = []
    for index, parameter in enumerate(parameters):
        ax = fig.add_subplot(1, len(parameters), index + 1, sharey=panels[0] if panels else None)
        ends = _draw_panel(ax, rows[rows["parameter"] == parameter], str(parameter), reference, score)
        ax.set_title(f"({chr(97 + index)})")
        panels.append(ax)
    for ax in panels[1:]:
        ax.set_ylabel("")
        ax.tick_params(labelleft=False)
    _label_lines(panels[-1], ends)
    return fig


def alt(frame: pd.DataFrame, reference: pd.DataFrame | None = None) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts, score = [], score_of(frame.columns)
    for parameter, rows in _valid_rows(frame).groupby("parameter", sort=False, observed=True):
        means = rows.groupby("value")["rsum"].mean()
        curve = ", ".join(f"{score.number(rsum)} at {value:g}" for value, rsum in means.items())
        parts.append(f"{parameter}: {curve}; best {means.idxmax():g}")
    text = (
        f"{score.name[:1].upper() + score.name[1:]} against hyper-parameters, means over seeds. "
        + ". ".join(parts)
        + "."
    )
    if reference is not None:
        others = _valid_reference(reference).groupby("label", sort=False)["rsum"].mean()
        text += " For comparison " + ", ".join(f"{label} {score.number(rsum)}" for label, rsum in others.items()) + "."
    return text


def _draw_reference(ax: Axes, reference: pd.DataFrame | None) -> list[_End]:
    """Draw a line and a band for each of the other objectives; return their names, levels and colours."""
    if reference is None:
        return []
    grouped = _valid_reference(reference).groupby("label", sort=False, observed=True)["rsum"]
    colours = style.colours([str(label) for label, _ in grouped])
    ends = []
    for label, rsum in grouped:
        level, colour = float(rsum.mean()), colours[str(label)]
        ax.axhline(level, color=colour, linestyle=(0, (5, 2)), linewidth=1, zorder=1, label=str(label))
        if len(rsum) > 1:
            ax.axhspan(level - float(rsum.std()), level + float(rsum.std()), color=colour, alpha=0.12, linewidth=0)
        ends.append((str(label), level, colour))
    return ends


def _valid_reference(reference: pd.DataFrame) -> pd.DataFrame:
    reference = as_rsum(reference)
    style.require_rows(reference, REFERENCE, f"{_NAME}, reference")
    return reference.dropna(subset=["rsum"])


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with an rsum. Raises InputError for other columns, duplicates, or when no row is left."""
    frame = as_rsum(frame)
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame.dropna(subset=["rsum"])
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a known rsum; got none. Evaluate the runs")
    if rows.duplicated(["parameter", "value", "seed"]).any():
        raise InputError(
            f"frame of {_NAME} must hold each value and seed once; got some twice. Draw one study at a time"
        )
    return rows
