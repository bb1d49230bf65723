"""Build a table of counts for a family of losses: all families share its lines, legend, meaning and notes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from . import _settings, _summary
from ._legend import legend
from ._meaning import meaning
from ._summary import Column
from .base import Table


def build_cocos_table(
    name: str, losses: str, rows: pd.DataFrame, statistics: Sequence[str], notes: Sequence[str] = ()
) -> Table:
    """Return the statistics of both directions, a line per system and setting.

    Args:
        name: of the table.
        losses: their name in the caption.
        rows: summary rows of the probe `cocos` of these losses.
        statistics: its columns, in each direction.
        notes: footnotes.
    """
    keys = _summary.system_keys(rows)
    columns = [
        Column(side, (statistic,), digits=3 if statistic[0] == "W" else 2)
        for side in _summary.directions(rows)
        for statistic in statistics
    ]
    return _summary.build_table(
        name,
        f"COCOS of {losses}: {_settings.settings(rows, 'batches', keys)}",
        _summary.group_rows(rows, keys),
        columns,
        notes,
        legend=legend(("cocos", statistic) for statistic in statistics),
        meaning=meaning(rows),
    )
