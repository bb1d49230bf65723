"""Where does what turns the hardest negative vanish, under each loss? (Unified loss, eq. 12, all losses in one map)"""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from . import labels, naming, style, tangent_cloud

COLUMNS = tangent_cloud.COLUMNS
WIDTH = 0.05  # of a bin, in similarity
MOST = 6  # losses of tangent_cloud; of more a map is drawn
LIMIT = r"at most $\sqrt{1-s^2}$"
_EPOCHS = 3  # panels of epochs: first, middle, last
_NAME = "vanishing_map"
_HEADLINE = "Gradient that turns the hardest negative, by its similarity and loss"
_SHARE = "mean tangent gradient / largest weight of the loss"
_WITHOUT = "without\nweight"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """At which similarities does each loss turn the hardest negative of a query, and where does it not?

    A row for each loss, the strongest first. Horizontal: similarity s of a query and its hardest negative, in bins of
    0.05. Colour: mean of |W| sin θ of the queries in the bin, as a share of the largest |W| that the loss has in all
    rows of the source; white: no query. The first row is what no loss can exceed, sin θ = √(1 − s²), which is 0 at
    s = 1: hard negatives there are pushed and hardly turned. Right: the share of queries whose hardest negative has no
    weight at all.

    Args:
        frame: columns COLUMNS, of one source and at most one epoch.
        ax: axes to draw on; None: new ones.
    """
    style.single_value(tangent_cloud.check(frame, _NAME), "source", _NAME)
    style.single_value(frame.assign(epoch=frame["epoch"].fillna(-1)), "epoch", _NAME)
    in_new_figure = ax is None
    if ax is None:
        fig = style.set_headline(style.new_figure(1.7, _height(frame)), _HEADLINE)
        ax = fig.add_subplot()
    mesh = _draw_panel(ax, frame, relative_rows(frame), _edges(frame), first=True)
    if in_new_figure:
        _add_bar(ax.figure, mesh, [ax])  # type: ignore[arg-type]
        naming.fit_height(ax.figure)  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How does the map of losses change over epochs? Panels for the first, a middle and the last, a row per source.

    Args:
        frame: columns COLUMNS.
    """
    sources = list(tangent_cloud.check(frame, _NAME).groupby("source", sort=False, observed=True))
    epochs = _shown_epochs(frame)
    height = sum(_height(rows) for _, rows in sources)
    fig = style.set_headline(style.new_figure(style.PAGE if len(epochs) > 1 else 1.7, height), _HEADLINE)
    names, edges, panels = labels.shortest_names(frame["source"].unique()), _edges(frame), []
    for row, (source, rows) in enumerate(sources):
        shares = relative_rows(rows)
        for column, epoch in enumerate(epochs):
            of_epoch = shares[_is_epoch(shares, epoch)]
            if of_epoch.empty:
                continue
            ax = fig.add_subplot(len(sources), len(epochs), row * len(epochs) + column + 1)
            mesh = _draw_panel(ax, rows, of_epoch, edges, first=column == 0)
            title = [*([labels.plain_text(names[str(source)])] if len(sources) > 1 else []), _title(of_epoch, epoch)]
            ax.set_xlabel("similarity $s$" if len(epochs) > 1 else ax.get_xlabel())
            ax.set_title(style.wrap_words(", ".join(title), 30))
            panels.append(ax)
    _add_bar(fig, mesh, panels)
    naming.fit_height(fig)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    names, parts = labels.shortest_names(tangent_cloud.check(frame, _NAME)["source"].unique()), []
    for source, rows in frame.groupby("source", sort=False, observed=True):
        shares = relative_rows(rows)
        for epoch in _shown_epochs(rows):
            of_epoch = shares[_is_epoch(shares, epoch)]
            means = of_epoch.groupby("objective", sort=False, observed=True)
            text = ", ".join(
                f"{labels.in_words(str(name))} {of_loss['share'].mean():.2f} "
                f"({float((of_loss['weight'] == 0).mean()):.0%} without weight)"
                for name, of_loss in means
            )
            when = "" if math.isnan(epoch) else f" after epoch {epoch:g}"
            parts.append(f"{names[str(source)]}{when}: {text}")
    return f"Mean tangent gradient of hardest negatives by the largest weight of each loss. {'. '.join(parts)}."


def relative_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one source with `share`, tangent / the largest weight that their loss has in all of them."""
    largest = frame.groupby("objective", sort=False, observed=True)["weight"].transform("max")
    return frame.assign(share=(frame["tangent"] / largest.where(largest > 0)).fillna(0.0))


def bin_means(similarity: _Values, values: _Values, edges: _Values) -> _Values:
    """Return the mean of the values in each bin; NaN in a bin without any.

    Args:
        similarity: (n,).
        values: (n,).
        edges: (bins + 1,).
    """
    index = np.clip(np.searchsorted(edges, similarity, side="right") - 1, 0, len(edges) - 2)
    number = np.bincount(index, minlength=len(edges) - 1)
    total = np.bincount(index, values, minlength=len(edges) - 1)
    means: _Values = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
    return means


def _draw_panel(ax: Axes, rows: pd.DataFrame, shares: pd.DataFrame, edges: _Values, first: bool) -> QuadMesh:
    """Draw the losses of `rows`, one epoch of which is `shares`."""
    order = relative_rows(rows).groupby("objective", sort=False, observed=True)["share"].mean()
    names = list(order.sort_values(ascending=False, kind="stable").index)
    one_loss = shares[shares["objective"] == shares["objective"].iloc[0]]
    sine = np.sqrt(np.clip(1 - one_loss["similarity"].to_numpy(dtype=np.float64) ** 2, 0, None))
    lines = [bin_means(one_loss["similarity"].to_numpy(dtype=np.float64), sine, edges)]
    texts = [""]
    for name in names:
        of_loss = shares[shares["objective"] == name]
        similarity, share = of_loss[["similarity", "share"]].to_numpy(dtype=np.float64).T
        lines.append(bin_means(similarity, share, edges))
        texts.append(f"{float((of_loss['weight'] == 0).mean()):.0%}".replace("%", " %") if len(of_loss) else "")
    levels = np.arange(len(lines) + 1) - 0.5
    mesh = ax.pcolormesh(
        edges, levels, np.ma.masked_invalid(np.array(lines)), cmap=colormaps["viridis"], vmin=0.0, vmax=1.0,
        rasterized=True,
    )  # fmt: skip
    ax.axhline(0.5, color="white", linewidth=3)
    ax.set(xlim=(edges[0], edges[-1]), ylim=(levels[-1], levels[0]), xlabel="similarity $s$ of the hardest negative")
    words = [LIMIT, *(style.wrap_words(labels.label_text(str(name)), 34) for name in names)] if first else []
    ax.set_yticks(range(len(lines)) if first else [], words)
    ax.tick_params(axis="y", length=0, labelsize=style.small())
    ax.locator_params(axis="x", nbins=5)
    transform, size = ax.get_yaxis_transform(), style.small()
    ax.text(1.02, -0.5, _WITHOUT, transform=transform, va="bottom", fontsize=size)
    for level, text in enumerate(texts):
        ax.text(1.02, level, text, transform=transform, va="center", fontsize=size)
    return mesh


def _add_bar(fig: Figure, mesh: QuadMesh, panels: list[Axes]) -> None:
    bar = fig.colorbar(mesh, ax=panels, location="bottom", aspect=40, shrink=0.8, label=_SHARE)
    bar.outline.set_visible(False)


def _height(frame: pd.DataFrame) -> float:
    """Return the height of a panel, in heights of the style: a line for each loss, and the texts around them."""
    line = 1.55 * style.small() / 72 / float(mpl.rcParams["figure.figsize"][1])
    return 0.55 + line * (int(frame["objective"].nunique()) + 1)


def _edges(frame: pd.DataFrame) -> _Values:
    """Return the edges of bins of WIDTH up to 1, below the smallest similarity."""
    number = math.ceil((1 - float(frame["similarity"].min())) / WIDTH - 1e-9)
    return 1 - WIDTH * np.arange(max(number, 1), -1, -1, dtype=np.float64)


def _shown_epochs(frame: pd.DataFrame) -> list[float]:
    """Return the first, a middle and the last epoch; NaN where there is none."""
    known = sorted(map(float, frame["epoch"].dropna().unique()))
    if not known:
        return [math.nan]
    chosen = np.unique(np.linspace(0, len(known) - 1, min(_EPOCHS, len(known))).round().astype(int))
    return [known[index] for index in chosen]


def _is_epoch(frame: pd.DataFrame, epoch: float) -> pd.Series[bool]:
    return frame["epoch"].isna() if math.isnan(epoch) else frame["epoch"] == epoch


def _title(of_epoch: pd.DataFrame, epoch: float) -> str:
    queries = int(of_epoch.groupby("objective", observed=True).size().max())
    return f"{'' if math.isnan(epoch) else f'epoch {epoch:g}: '}{queries:,} {'query' if queries == 1 else 'queries'}"
