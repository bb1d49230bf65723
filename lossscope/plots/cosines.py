"""Are positives above other candidates? (cosines of pairs, beside those of all other pairs)"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from . import style

COLUMNS = ("kind", "cosine")
_NAME = "cosines"
_HEADLINE = "Cosines of pairs and of other candidates"
_KINDS = ("positive", "hardest negative", "negative")


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Do the cosines of positives lie above those of negatives?

    Horizontal: cosine. Vertical: density, each kind alone. Where positives lie on the negatives, the model cannot tell
    them apart; two hills of positives mean that a share of the pairs is wrong. Where the hardest negatives lie right of
    the positives, most rankings are wrong.

    Args:
        frame: columns COLUMNS; kinds are positive, hardest negative and negative.
        ax: axes to draw on; None: new ones.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    ax = style.axes_or_new(ax, _HEADLINE)
    kinds = [kind for kind in _KINDS if (frame["kind"] == kind).any()]
    colours = dict(zip(_KINDS, (style.PALETTE[0], style.PALETTE[1], "0.6"), strict=True))
    low, high = float(frame["cosine"].min()), float(frame["cosine"].max())
    spread = max(high - low, 1e-6)
    edges = np.linspace(low - 0.02 * spread, high + 0.02 * spread, 60)
    for kind in kinds:
        values = frame.loc[frame["kind"] == kind, "cosine"]
        sns.histplot(
            x=values,
            bins=list(edges),
            stat="density",
            element="step",
            color=colours[kind],
            alpha=0.25,
            label=kind,
            ax=ax,
        )
    ax.set(xlabel="cosine", ylabel="density")
    ax.legend(loc="best", fontsize=style.small())
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    style.require_rows(frame, COLUMNS, _NAME)
    means = frame.groupby("kind", sort=False, observed=True)["cosine"].mean()
    return f"Densities of cosines. {'; '.join(f'{kind} {mean:.3f} on average' for kind, mean in means.items())}."
