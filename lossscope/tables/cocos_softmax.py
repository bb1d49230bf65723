"""How many negatives does a softmax-like loss count, and with which weight? (COCOS paper, Table 3)"""

from __future__ import annotations

import pandas as pd

from lossscope.errors import NoRows

from . import _summary
from ._cocos import build_cocos_table
from .base import Table

_STATISTICS = ("C_neg", "W_neg", "W_pos", "W_low", "C_0")


def build(frame: pd.DataFrame) -> Table:
    """Return counts and weights of every objective with C_neg in both directions. Raises NoRows without any.

    Args:
        frame: summary rows, among them rows of the probe `cocos`.
    """
    rows = _summary.select(frame, "cocos", "cocos_softmax")
    names = sorted({_summary.name_of(spec) for spec in rows.loc[rows["statistic"] == "C_neg", "objective"]})
    if not names:
        raise NoRows(
            "table cocos_softmax must have rows of the statistic C_neg; got "
            f"{_summary.list_values(rows['statistic'])}. Run `lossscope cocos SOURCE --objective ntxent`"
        )
    rows = _summary.select_objectives(rows, names, "cocos_softmax")
    return build_cocos_table("cocos_softmax", "the objectives that weigh every negative", rows, _STATISTICS)
