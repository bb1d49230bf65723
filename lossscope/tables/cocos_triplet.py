"""How many negatives does a triplet loss count per query? (COCOS paper, Table 2)"""

from __future__ import annotations

import pandas as pd

from . import _settings, _summary
from ._legend import legend
from ._meaning import meaning
from ._summary import Column
from .base import Table

_STATISTICS = ("C_q", "C_B", "C_0")
_RELEASED = (
    "released: t2i counts of triplet are summed per image, not per caption, as in the published table, so C_q and C_0 "
    "of t2i describe images; C_B is right. Compare with the row corrected."
)


def build(frame: pd.DataFrame) -> Table:
    """Return C_q, C_B and C_0 of triplet and triplet_sh, both directions. Raises NoRows where there are none.

    Args:
        frame: summary rows with those of the probe `cocos`.
    """
    rows = _summary.select_objectives(
        _summary.select(frame, "cocos", "cocos_triplet"), ("triplet", "triplet_sh"), "cocos_triplet"
    )
    columns = [Column(side, (name,)) for side in _summary.directions(rows) for name in _STATISTICS]
    caption = "COCOS of the triplet losses: " + _settings.settings(rows, "batches", _summary.system_keys(rows))
    has_triplet = any(
        _summary.name_of(spec) == "triplet" for spec in rows.loc[rows["convention"] == "released", "objective"]
    )
    notes = (*_settings.undefined_note(rows), *((_RELEASED,) if has_triplet else ()))
    explained = legend(("cocos", name) for name in _STATISTICS)
    return _summary.build_table(
        "cocos_triplet",
        caption,
        _summary.group_rows(rows, _summary.system_keys(rows)),
        columns,
        notes,
        legend=explained,
        meaning=meaning(rows),
    )
