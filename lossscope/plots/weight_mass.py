"""How much weight is on the positive, on the negatives that count, and on all those below eps?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("label", "direction", "statistic", "mean")
PARTS: dict[str, tuple[str, Any, str]] = {  # statistic -> colour, hatch and name of its part of a bar
    "W_pos": ("#0072B2", "", "on the positive"),
    "W_neg": ("#D55E00", "////", "on negatives above ε"),
    "W_low": ("#E9C46A", "....", "on negatives up to ε"),
}
_DIRECTIONS = {"i2t": "image to text", "t2i": "text to image"}
_NAME = "weight_mass"


def draw(frame: pd.DataFrame, ax: Axes | None = None, share: bool = False) -> Axes:
    """Where is the weight of a query? One bar per objective and direction, in parts; means over batches.

    Blue pulls the positive, orange is on negatives above eps, yellow on the many below: a bar with much yellow has a
    gradient that counting at eps does not see. In a softmax loss blue equals the sum of the other two. The scale is
    that of each objective's own paper, so compare parts within a bar. A part that is not known is not drawn, and the
    label has a question mark.

    Args:
        frame: columns COLUMNS; rows of other statistics than W_pos, W_neg and W_low are left out.
        ax: axes to draw on; None: new ones.
        share: divide each bar by its sum.
    """
    wide = _pivot(frame)
    in_new_figure = ax is None
    ax = style.new_figure(height=0.25 + 0.11 * len(wide)).add_subplot() if ax is None else ax
    values = wide.div(wide.sum(axis=1).replace(0, np.nan), axis=0) if share else wide
    positions = np.arange(len(wide))[::-1].astype(float)
    left = np.zeros(len(wide))
    for part, (colour, hatch, name) in PARTS.items():
        width = values[part].fillna(0.0).to_numpy(float)
        ax.barh(positions, width, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5, label=name)
        left = left + width
    incomplete = wide.isna().any(axis=1)
    ax.set_yticks(positions, [_bar_label(key, row) for key, row in zip(wide.index, incomplete, strict=True)])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("share of the weight of a query" if share else "weight per query")
    ax.margins(x=0.02)
    handles = [Patch(facecolor=colour, hatch=h, edgecolor="white", label=name) for colour, h, name in PARTS.values()]
    if in_new_figure:
        naming.legend_below(ax.figure, handles)  # type: ignore[arg-type]
    else:
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, fontsize="small")
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    bars = []
    for key, row in _pivot(frame).iterrows():
        numbers = {part: "unknown" if pd.isna(row[part]) else f"{row[part]:.3g}" for part in PARTS}
        parts = ", ".join(f"{name.replace('ε', 'eps')} {numbers[part]}" for part, (_, _, name) in PARTS.items())
        bars.append(f"{' '.join(map(str, key if isinstance(key, tuple) else (key,)))}: {parts}")
    return "Weight of a query in parts. " + "; ".join(bars) + "."


def _bar_label(key: tuple[str, str], incomplete: bool) -> str:
    label, direction = key
    return style.wrap_spec(f"{label}, {direction}", 26) + (" ?" if incomplete else "")


def _pivot(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per (label, direction), in the order of the frame, with a column per part.

    Raises InputError for other columns or directions, duplicates, or when no part is known.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    others = sorted(set(map(str, frame["direction"])) - set(_DIRECTIONS))
    if others:
        raise InputError(f"direction must be i2t or t2i; got {', '.join(others)}. Leave other rows out")
    rows = frame[frame["statistic"].isin(PARTS)]
    if rows["mean"].dropna().empty:
        raise InputError(f"frame of {_NAME} must have W_pos, W_neg or W_low; got none. Run the probe weight_mass")
    if rows.duplicated(["label", "direction", "statistic"]).any():
        raise InputError(
            f"frame of {_NAME} must hold each part of a bar once; got some twice. Distinguish them in `label`"
        )
    keys = rows[["label", "direction"]].drop_duplicates()
    keys = keys.sort_values("label", key=lambda labels: pd.factorize(labels)[0], kind="stable")
    wide = rows.pivot(index=["label", "direction"], columns="statistic", values="mean")  # noqa: PD010
    return wide.reindex(columns=list(PARTS)).loc[list(keys.itertuples(index=False, name=None))]
