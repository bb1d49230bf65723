"""How many negatives does a triplet loss count per query? (COCOS paper, Table 2)"""

from __future__ import annotations

import pandas as pd

from . import _settings, _summary
from ._cocos import build_cocos_table
from .base import Table

_STATISTICS = ("C_q", "C_B", "C_0")
_RELEASED = (
    "released: t2i counts of triplet are summed per image, not per caption, as in the published table, so C_q and C_0 "
    "of t2i describe images; C_B is right. Compare with the row corrected."
)


def build(frame: pd.DataFrame) -> Table:
    """Return C_q, C_B and C_0 of triplet and triplet_sh in both directions. Raises NoRows without any.

    Args:
        frame: summary rows, among them rows of the probe `cocos`.
    """
    rows = _summary.select_objectives(
        _summary.select(frame, "cocos", "cocos_triplet"), ("triplet", "triplet_sh"), "cocos_triplet"
    )
    has_triplet = any(
        _summary.name_of(spec) == "triplet" for spec in rows.loc[rows["convention"] == "released", "objective"]
    )
    notes = (*_settings.undefined_note(rows), *((_RELEASED,) if has_triplet else ()))
    return build_cocos_table("cocos_triplet", "the triplet losses", rows, _STATISTICS, notes)
