"""Is the loss of a training still that of guessing? (the loss against steps, beside what equal similarities cost)"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import style

COLUMNS = ("step", "loss")
_NAME = "loss_guess"
_HEADLINE = "The loss beside that of guessing"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Does the loss leave the line of guessing?

    Horizontal: steps. Vertical: the loss; a thin line is a step, a thick one the median of a fortieth of them. Dashed:
    the loss that equal similarities have, log B of a softmax over B candidates, the margin of a triplet loss. A model
    that learns leaves this line in the first tenth. Gaps: steps whose loss is not finite.

    Args:
        frame: columns COLUMNS, and where they are known `guess`, the loss of guessing, and `guess_name`.
        ax: axes to draw on; None: new ones.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    ax = style.axes_or_new(ax, _HEADLINE)
    rows = frame.sort_values("step")
    colour = style.PALETTE[0]
    ax.plot(rows["step"], rows["loss"].where(np.isfinite(rows["loss"])), color=colour, linewidth=0.6, alpha=0.5)
    window = max(len(rows) // 40, 5)
    smooth = rows["loss"].where(np.isfinite(rows["loss"])).rolling(window, min_periods=1, center=True).median()
    ax.plot(rows["step"], smooth, color=colour)
    guess, name = guess_of(rows)
    if guess is not None:
        ax.axhline(guess, color="0.35", linestyle=(0, (5, 2)), linewidth=1)
        ax.annotate(
            name, (1, guess), (-2, 2), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
            color="0.35", fontsize=style.small(),
        )  # fmt: skip
        low, high = ax.get_ylim()
        ax.set_ylim(low, max(high, guess + 0.12 * (max(high, guess) - low)))
    ax.set(xlabel="step", ylabel="loss")
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    style.require_rows(frame, COLUMNS, _NAME)
    finite = frame.sort_values("step")["loss"]
    finite = finite[np.isfinite(finite)]
    guess, name = guess_of(frame)
    beside = "" if guess is None else f"; guessing costs {guess:.3g} ({name})"
    if finite.empty:
        return f"No step has a finite loss{beside}."
    tenth = max(len(finite) // 10, 1)
    first, last = finite.iloc[:tenth].median(), finite.iloc[-tenth:].median()
    return f"Loss against steps: {first:.3g} at first, {last:.3g} at the end{beside}."


def guess_of(frame: pd.DataFrame) -> tuple[float | None, str]:
    """Return the loss of guessing that a frame states, and its name."""
    if "guess" not in frame or not frame["guess"].notna().any():
        return None, ""
    name = str(frame["guess_name"].dropna().iloc[0]) if "guess_name" in frame else "guessing"
    return float(frame["guess"].dropna().iloc[0]), name
