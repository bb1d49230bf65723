"""Do losses pull the same way? Cosines of the gradients of all pairs of losses, similar ones side by side."""

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

from . import labels, naming, style

COLUMNS = ("space", "layer", "a", "b", "cosine", "a_order", "a_cluster", "cut")
SPACES = {
    "similarities": "in the similarities, $W = dL/dS$",
    "queries": "at the queries, tangent to the sphere",
    "parameters": "in the parameters of the model",
}
TOTAL = "total"
_NAME = "alignment"
_HEADLINE = "Do two losses pull the same way? Cosines of their gradients"
_FEW = 5  # losses of panels that stand side by side
_WIDE = 12  # losses of a panel over the whole width
_DARK = 0.62  # |cosine| from which white is more readable than black
_Matrix = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which losses teach nearly the same, in one space?

    Each cell is the mean cosine of the gradients of two losses: 1, dark, they pull the same way; 0, white, neither
    helps the other; below 0, violet, each undoes what the other does. Numbers are hundredths where there are more than
    five losses. Losses stand in the order of the leaves of average linkage on 1 − cosine; a frame is a cluster, whose
    parts have a mean cosine of at least the cut. Grey: unknown, as a gradient is 0 everywhere.

    Args:
        frame: columns COLUMNS, of one space; of parameters the layer `total`.
        ax: axes to draw on; None: new ones.
    """
    rows = _check(frame)
    style.single_value(rows, "space", _NAME)
    n = rows["a"].nunique()
    in_new_figure = ax is None
    if ax is None:
        fig = style.set_headline(style.new_figure(*_size(n)), _HEADLINE)
        ax = fig.add_subplot()
    _draw_panel(ax, rows)
    if in_new_figure:
        naming.fit_height(ax.figure)  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Do losses that agree in the similarities still agree in the parameters? A panel for each space, as `draw`.

    Args:
        frame: columns COLUMNS.
    """
    rows = _check(frame)
    spaces = [space for space in SPACES if (rows["space"] == space).any()]
    n = rows["a"].nunique()
    width, height = _size(n)
    per_row = len(spaces) if n <= _FEW else 1
    n_rows = math.ceil(len(spaces) / per_row)
    fig = style.set_headline(style.new_figure(width * per_row, height * n_rows), _HEADLINE)
    for index, space in enumerate(spaces):
        _draw_panel(fig.add_subplot(n_rows, per_row, index + 1), rows[rows["space"] == space])
    naming.fit_height(fig)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    rows = _check(frame)
    parts = []
    for space in SPACES:
        of_space = rows[rows["space"] == space]
        if of_space.empty:
            continue
        apart = of_space[of_space["a"] != of_space["b"]].dropna(subset=["cosine"])
        clusters, losses = of_space["a_cluster"].nunique(), of_space["a"].nunique()
        text = f"{SPACES[space].replace('$', '')}: {clusters} clusters of {losses} losses"
        if len(apart):
            ends = (apart.iloc[int(apart["cosine"].argmax())], apart.iloc[int(apart["cosine"].argmin())])
            most, least = (
                f"{labels.in_words(str(row['a']))} and {labels.in_words(str(row['b']))} {row['cosine']:.2f}"
                for row in ends
            )
            text = f"{text}; most alike {most}; least {least}"
        parts.append(text)
    return f"Heat maps of the cosines of gradients of pairs of losses: {'. Those '.join(parts)}."


def _draw_panel(ax: Axes, rows: pd.DataFrame) -> None:
    names, cosines, clusters = _matrix(rows)
    n, colour_map = len(names), colormaps["PuOr_r"].with_extremes(bad="0.8")
    ax.imshow(np.ma.masked_invalid(cosines), cmap=colour_map, vmin=-1.0, vmax=1.0, aspect="equal")
    size, digits = style.small(), 2 if n <= _FEW else 0
    for i in range(n):
        for j in range(n):
            value = cosines[i, j]
            if math.isnan(value):
                continue
            # a hyphen is half as wide as a minus, which would touch the number beside it
            text = f"{value:z.2f}".replace("-", "−") if digits else f"{100 * value:z.0f}"
            ax.text(
                j, i, text, ha="center", va="center", fontsize=size,
                color="white" if abs(value) > _DARK else "black",
            )  # fmt: skip
    for cluster in dict.fromkeys(clusters):
        members = [i for i in range(n) if clusters[i] == cluster]
        if members and not math.isnan(cluster):
            start, length = members[0] - 0.5, len(members)
            ax.add_patch(
                Rectangle((start, start), length, length, fill=False, edgecolor="black", linewidth=1.4, clip_on=False)
            )
    words = [labels.label_text(name) for name in names]
    width = 18 if n <= _FEW else 40
    ax.set_yticks(range(n), [style.wrap_words(word, width) for word in words])
    ax.set_xticks(range(n), [style.wrap_words(word, width) for word in words], rotation=90)
    ax.tick_params(length=0, labelsize=style.small())
    for spine in ax.spines.values():
        spine.set_visible(False)
    space, unit = str(rows["space"].iloc[0]), "cosine" if digits else "100 × cosine"
    title = style.wrap_words(f"{unit}, {SPACES[space]}", 28 if n <= _FEW else 62)
    ax.set_title(f"{title}\nframes: clusters at {rows['cut'].iloc[0]:g}")


def _matrix(rows: pd.DataFrame) -> tuple[list[str], _Matrix, list[float]]:
    """Return the names in the order of leaves, their cosines (n, n), NaN where unknown, and their clusters."""
    of_losses = rows[rows["a"] == rows["b"]].sort_values("a_order", na_position="last", kind="stable")
    names = list(map(str, of_losses["a"]))
    index = {name: number for number, name in enumerate(names)}
    cosines = np.full((len(names), len(names)), np.nan)
    for a, b, cosine in zip(rows["a"], rows["b"], rows["cosine"], strict=True):
        cosines[index[str(a)], index[str(b)]] = cosines[index[str(b)], index[str(a)]] = cosine
    return names, cosines, list(map(float, of_losses["a_cluster"]))


def _size(n: int) -> tuple[float, float]:
    """Return width and height of a panel of n losses, in sizes of the style."""
    if n <= _FEW:
        return (style.PAGE / 3, 0.95)
    wide = min(1.0 + 0.1 * max(n - _FEW, 0), style.PAGE) if n <= _WIDE else style.PAGE
    return wide, 1.3 * wide


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of whole spaces. Raises InputError unless each pair of losses of a space is there once."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame[frame["layer"].astype(object).fillna("").isin(["", TOTAL])]
    wrong = sorted(set(map(str, rows["space"])) - set(SPACES))
    if wrong or rows.empty:
        raise InputError(
            f"space of {_NAME} must be one of {', '.join(SPACES)}, with layer empty or {TOTAL}; got "
            f"{', '.join(wrong) or 'layers alone'}. Leave other rows out"
        )
    for space, of_space in rows.groupby("space", sort=False, observed=True):
        pairs = {frozenset((str(a), str(b))) for a, b in zip(of_space["a"], of_space["b"], strict=True)}
        losses = {name for pair in pairs for name in pair}
        if not len(of_space) == len(pairs) == len(losses) * (len(losses) + 1) // 2:
            raise InputError(
                f"frame of {_NAME} must have each pair of losses once, and each loss with itself; got "
                f"{len(of_space)} rows for {len(losses)} losses in {space}. Draw the rows of one source and one run"
            )
    cosines = rows["cosine"].to_numpy(dtype=np.float64)
    if (np.abs(cosines[~np.isnan(cosines)]) > 1 + 1e-9).any():
        raise InputError(
            f"cosine of {_NAME} must be in -1..1; got others. Use the rows of `lossscope analyse alignment`"
        )
    return rows
