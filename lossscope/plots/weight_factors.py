"""What is a loss made of? Its triplet weight T, its pair weights, and what no product of them explains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("objective", "s_pos", "s_neg", "triplet", "positive", "negative", "residual")
_NAME = "weight_factors"
_HEADLINE = "A loss as a triplet weight times pair weights, and what is left"
_SPREAD = 20.0  # largest over smallest pair weight from which their axis is logarithmic
_EXACT = 1e-6  # residual of a field that factorises, but for rounding
_LOWEST = 1e-4  # of the largest pair weight: lower ones are below the axis
_SIDES = (("s_pos", "positive", 0), ("s_neg", "negative", 1))
_Grid = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame) -> Figure:
    """Is a loss a triplet weight times a pair weight: w₊ = T P₊(s₊), w₋ = T P₋(s₋)?

    Left: T against D = s₋ − s₊, its mean, and in grey from its lowest to its highest value at each D: a line where T
    depends on D alone. Middle: P₊ and P₋, geometric mean 1, dashed where a positive is pushed or a negative pulled.
    Right: what the product leaves of log(pull / push), over s₊ and s₋; grey where a weight is 0. White all over: the
    loss factorises.

    Args:
        frame: columns COLUMNS, of one objective, on a full grid.
    """
    style.single_value(_check(frame), "objective", _NAME)
    return draw_many(frame)


def draw_many(frame: pd.DataFrame) -> Figure:
    """What are several losses made of? A row of three panels for each, as `draw`.

    Args:
        frame: columns COLUMNS.
    """
    parts = list(_check(frame).groupby("objective", sort=False, observed=True))
    fig = style.set_headline(style.new_figure(style.PAGE, 0.72 * len(parts)), _HEADLINE)
    titles = []
    for index, (objective, rows) in enumerate(parts):
        axes = [fig.add_subplot(len(parts), 3, 3 * index + column + 1) for column in range(3)]
        last = index == len(parts) - 1
        _draw_triplet(axes[0], rows)
        _draw_pairs(axes[1], rows)
        largest = _draw_residual(axes[2], rows)
        name = style.wrap_words(labels.label_text(str(objective)), 26)
        left = "residual: none fitted" if np.isnan(largest) else f"residual up to {largest:.2g}"
        titles += [f"{name}\n$T$", "$P_+$ and $P_-$", "residual 0" if largest <= _EXACT else left]
        for ax, text in zip(axes, ("$D = s_- - s_+$", "similarity", "$s_+$"), strict=True):
            ax.set_xlabel(text if last else "")
    panels = [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]
    assert len(panels) == len(titles)
    naming.title_panels(fig, titles, 3)
    naming.legend_below(fig, _handles())
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for objective, rows in _check(frame).groupby("objective", sort=False, observed=True):
        residual = rows["residual"].abs().max()
        if np.isnan(residual):
            left = "no cell has both weights"
        elif residual <= _EXACT:
            left = "the product leaves nothing of the ratio of pull and push"
        else:
            left = f"the product leaves up to {residual:.2g} of the logarithm of pull / push"
        ends = [rows[name].abs().agg(["min", "max"]) for name in ("positive", "negative")]
        ranges = " and ".join(
            f"of {name} {low:.3g} to {high:.3g}"
            for name, (low, high) in zip(("positives", "negatives"), ends, strict=True)
        )
        parts.append(f"{labels.in_words(str(objective))}: {left}; pair weights {ranges}")
    return f"Triplet weight, pair weights and residual of losses. {'. '.join(parts)}."


def _draw_triplet(ax: Axes, rows: pd.DataFrame) -> None:
    known = rows.dropna(subset=["triplet"])
    values = known.groupby((known["s_neg"] - known["s_pos"]).round(9))["triplet"].agg(["min", "mean", "max"])
    D = values.index.to_numpy(dtype=np.float64)
    ax.fill_between(D, values["min"], values["max"], color="0.75", linewidth=0)
    ax.plot(D, values["mean"], color=style.PALETTE[2])
    ax.set_ylim(0, None)
    ax.locator_params(nbins=4)


def _draw_pairs(ax: Axes, rows: pd.DataFrame) -> None:
    sizes = []
    for similarity, name, colour in _SIDES:
        curve = rows[[similarity, name]].drop_duplicates().dropna().sort_values(similarity)
        s, weight = curve.to_numpy(dtype=np.float64).T
        for below, dashes in ((False, "-"), (True, "--")):
            shown = np.where((weight < 0) == below, np.abs(weight), np.nan)
            ax.plot(s, shown, dashes, color=style.PALETTE[colour], linewidth=(3.2, 1.4)[colour])  # equal ones both show
        sizes.append(np.abs(weight))
    size = np.concatenate(sizes)
    size = size[size > 0]
    if len(size) and size.max() > _SPREAD * size.min():
        ax.set_yscale("log")
        ax.set_ylim(max(size.min(), _LOWEST * size.max()) / 1.5, 1.5 * size.max())
    else:
        ax.set_ylim(0, None)


def _draw_residual(ax: Axes, rows: pd.DataFrame) -> float:
    """Draw the field of the residual, and return its largest size; NaN where nothing is fitted."""
    wide = rows.pivot_table(index="s_neg", columns="s_pos", values="residual", dropna=False)
    values = wide.to_numpy(dtype=np.float64)
    known = np.abs(values[~np.isnan(values)])
    largest = float(known.max()) if len(known) else float("nan")
    end = largest if largest > _EXACT else 1.0
    values = values if largest > _EXACT else 0 * values  # rounding has no colour
    mesh = ax.pcolormesh(
        wide.columns.to_numpy(), wide.index.to_numpy(), np.ma.masked_invalid(values), shading="nearest",
        cmap=colormaps["PuOr_r"].with_extremes(bad="0.8"), vmin=-end, vmax=end, rasterized=True,
    )  # fmt: skip
    ax.set_facecolor("0.8")
    ax.set_ylabel("$s_-$")
    ax.locator_params(nbins=3)
    if largest > _EXACT:
        ax.figure.colorbar(mesh, ax=ax, ticks=[-end, 0, end], format="%.1g").outline.set_visible(False)
    return largest


def _handles() -> list[Line2D]:
    names = ("$P_+$ of the positive", "$P_-$ of the negative")
    pairs = [
        Line2D([], [], color=style.PALETTE[colour], label=name)
        for name, (_, _, colour) in zip(names, _SIDES, strict=True)
    ]
    return [
        Line2D([], [], color=style.PALETTE[2], label="$T$, mean; grey: lowest to highest at each $D$"), *pairs,
        Line2D([], [], color="0.3", linestyle="--", label="the other sign: pushes a positive, pulls a negative"),
    ]  # fmt: skip


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raises InputError unless it has all columns, full grids, and T >= 0."""
    style.require_rows(frame, COLUMNS, _NAME)
    for objective, rows in frame.groupby("objective", sort=False, observed=True):
        n_x, n_y = rows["s_pos"].nunique(), rows["s_neg"].nunique()
        if not len(rows) == len(rows[["s_pos", "s_neg"]].drop_duplicates()) == n_x * n_y or min(n_x, n_y) < 2:
            raise InputError(
                f"frame of {_NAME} must hold each point of an s_pos x s_neg grid once, at least 2 x 2; got {len(rows)} "
                f"rows for {n_x} x {n_y} of {objective}. Use the file that `lossscope analyse factors --cells` writes"
            )
    if (frame["triplet"] < 0).any():
        raise InputError(f"triplet of {_NAME} must be at least 0; got others. T has no sign: pair weights have")
    return frame
