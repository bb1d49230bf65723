"""Is it always the same few candidates that are the hardest negative? (how often each is, in decreasing order)"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("label", "count")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)))
_HEADLINE = "How unevenly candidates are the hardest negative"
_NAME = "hubness"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """What share of all hardest negatives do the most frequent candidates make up? (a Lorenz curve from the top)

    Horizontal: share of the candidates, the most frequent hardest negatives first. Vertical: share of the queries whose
    hardest negative is among them. On the thin diagonal all candidates would be equally frequent; the earlier a line is
    at the top, the fewer candidates matter, and where it gets there is the share that is ever a hardest negative.
    Counts are over all batches of a pass; the probe `hubness` counts within a batch, so that its hub_skewness and
    never_hardest are other numbers.

    Args:
        frame: columns COLUMNS, one row per candidate, those with count 0 included.
        ax: axes to draw on; None: new ones.
    """
    _check(frame)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE)
    names = list(map(str, frame["label"].unique()))
    colours = style.colours(names)
    for index, (label, rows) in enumerate(frame.groupby("label", sort=False, observed=True)):
        counts = rows["count"].to_numpy(np.float64)
        dashes, name = _DASHES[index % len(_DASHES)], labels.label_text(str(label))
        ax.plot(*_lorenz(counts), color=colours[str(label)], linestyle=dashes, label=name)
    ax.axline((0, 0), slope=1, color="0.75", linewidth=0.8, zorder=0)
    ax.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="share of candidates, most chosen first", ylabel="share of queries")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda tick, _: f"{100 * tick:g} %")
    if in_new_figure:
        naming.legend_below(ax.figure, ax.get_lines()[: len(names)])  # type: ignore[arg-type]
    else:
        ax.legend(handles=ax.get_lines()[-1 - len(names) : -1], loc="lower right", fontsize=style.small())
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    _check(frame)
    parts = []
    for label, rows in frame.groupby("label", sort=False, observed=True):
        counts = rows["count"].to_numpy(np.float64)
        tenth = float(np.interp(0.1, *_lorenz(counts)))
        parts.append(
            f"{labels.in_words(str(label))}: the tenth chosen most often is the hardest negative of "
            f"{tenth:.0%} of the queries, "
            f"{float((counts == 0).mean()):.0%} are never chosen"
        )
    return "How unevenly candidates are chosen as hardest negatives, over all batches. " + "; ".join(parts) + "."


def _lorenz(counts: _Values) -> tuple[_Values, _Values]:
    """Return the share of the candidates, most frequent first, and the share of all counts that they have."""
    decreasing = np.sort(counts)[::-1]
    return np.linspace(0, 1, len(decreasing) + 1), np.concatenate([[0.0], np.cumsum(decreasing) / decreasing.sum()])


def _check(frame: pd.DataFrame) -> None:
    """Raise InputError unless the frame has all columns, counts >= 0 and a count above 0 for each label."""
    style.require_rows(frame, COLUMNS, _NAME)
    if not np.isfinite(frame["count"].to_numpy(np.float64)).all() or (frame["count"] < 0).any():
        raise InputError(
            f"counts of {_NAME} must be numbers >= 0; got others. Use "
            "lossscope.engine.similarity_clouds.hardest_negative_counts"
        )
    empty = [str(label) for label, rows in frame.groupby("label", observed=True) if rows["count"].sum() == 0]
    if empty:
        raise InputError(
            f"{', '.join(empty)} must have a chosen candidate; the probe skipped every query. Leave it out"
        )
