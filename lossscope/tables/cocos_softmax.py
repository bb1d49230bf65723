"""How many negatives does a softmax-like loss count, and with which weight? (COCOS paper, Table 3)"""

from __future__ import annotations

import pandas as pd

from lossscope.errors import NoRows

from . import _settings, _summary
from ._legend import legend
from ._meaning import meaning
from ._summary import Column
from .base import Table

_STATISTICS = ("C_neg", "W_neg", "W_pos", "W_low", "C_0")


def build(frame: pd.DataFrame) -> Table:
    """Return counts and weights of both directions of every objective with C_neg. Raises NoRows without any.

    Args:
        frame: summary rows with those of the probe `cocos`.
    """
    rows = _summary.select(frame, "cocos", "cocos_softmax")
    names = sorted({_summary.name_of(spec) for spec in rows.loc[rows["statistic"] == "C_neg", "objective"]})
    if not names:
        raise NoRows(
            "table cocos_softmax must have rows of the statistic C_neg; got "
            f"{_summary.list_values(rows['statistic'])}. Run `lossscope cocos SOURCE --objective ntxent`"
        )
    rows = _summary.select_objectives(rows, names, "cocos_softmax")
    columns = [
        Column(side, (name,), digits=3 if name[0] == "W" else 2)
        for side in _summary.directions(rows)
        for name in _STATISTICS
    ]
    caption = "COCOS of the objectives that weigh every negative: " + _settings.settings(
        rows, "batches", _summary.system_keys(rows)
    )
    explained = legend(("cocos", name) for name in _STATISTICS)
    return _summary.build_table(
        "cocos_softmax",
        caption,
        _summary.group_rows(rows, _summary.system_keys(rows)),
        columns,
        legend=explained,
        meaning=meaning(rows),
    )
