"""How lines of several objectives, sources and directions look, and how a legend names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from . import directions, labels, style

_ALL_NAMED = 20  # lines that are all in the legend; of more, half as many are, evenly spaced


def with_labels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with a label: the objective, and the source if there are several."""
    label, names = rows["objective"].astype(str), labels.shortest_names(rows["source"].unique())
    if len(names) > 1:
        label = label + " (" + rows["source"].astype(str).map(names) + ")"
    return rows.assign(label=label)


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each label: a sequence from dark to light for values of one objective, else its own."""
    families = {label.partition(":")[0] for label in names}
    if len(names) <= 2 or (len(families) > 1 and len(names) <= len(style.PALETTE)):
        return style.colours(names)
    sequence = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(names)))
    return {label: mpl.colors.to_hex(colour) for label, colour in zip(names, sequence, strict=True)}


def handles(of_labels: Mapping[str, str], drawn: Mapping[str, directions.DirectionStyle]) -> list[Line2D]:
    """Return a line of the legend for each label, and for each direction where there are several.

    Args:
        of_labels: label -> colour.
        drawn: direction -> its look.
    """
    named = list(of_labels.items())
    if len(named) > _ALL_NAMED:
        named = [named[round(index)] for index in np.linspace(0, len(named) - 1, _ALL_NAMED // 2)]
    lines = [Line2D([], [], color=colour, label=labels.label_text(label)) for label, colour in named]
    if len(drawn) > 1 or "both" in drawn:
        lines += [
            Line2D([], [], color="0.35", linestyle=direction.dashes, label=direction.name)
            for direction in drawn.values()
        ]
    return lines
