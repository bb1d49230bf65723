"""How many dimensions do embeddings use? (singular values of the centred embeddings, beside those of isotropic ones)"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import style

COLUMNS = ("side", "index", "value")
_NAME = "spectrum"
_HEADLINE = "Singular values of the embeddings"
_ISOTROPIC = "isotropic"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Where does the spectrum fall off?

    Horizontal: dimensions, the largest singular value first. Vertical: root mean square of the centred unit vectors
    along each, logarithmic. Grey: isotropic vectors of the same number and width. A line that falls early uses few
    dimensions; one that drops to nothing has collapsed in the others, and one far below grey in all of them.

    Args:
        frame: columns COLUMNS; rows whose side is `isotropic` are the null.
        ax: axes to draw on; None: new ones.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    ax = style.axes_or_new(ax, _HEADLINE)
    sides = [str(side) for side in frame["side"].unique() if side != _ISOTROPIC]
    colours = style.colours(sides) | {_ISOTROPIC: "0.6"}
    lowest = max(1e-6 * float(frame["value"].max()), 1e-12)
    for side, rows in frame.groupby("side", sort=False, observed=True):
        values = rows.sort_values("index")["value"].to_numpy(np.float64)
        dashes = (0, (5, 2)) if side == _ISOTROPIC else "-"
        ax.plot(
            np.arange(1, len(values) + 1),
            values.clip(min=lowest),
            color=colours[str(side)],
            linestyle=dashes,
            label=str(side),
        )
    ax.set_yscale("log")
    ax.set(xlabel="dimension", ylabel="root mean square along it")
    ax.legend(loc="best", fontsize=style.small())
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    style.require_rows(frame, COLUMNS, _NAME)
    parts = []
    for side, rows in frame.groupby("side", sort=False, observed=True):
        values = rows["value"].to_numpy(np.float64)
        used = int((values > 0.1 * values.max()).sum())
        parts.append(f"{side}: largest {values.max():.2g}, {used} of {len(values)} above a tenth of it")
    return f"Singular values of the centred embeddings. {'; '.join(parts)}."
