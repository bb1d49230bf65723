"""How many negatives do the triplet losses count? Ours beside Table 2 of Bleeker & de Rijke (2022)."""

from __future__ import annotations

from ._paper import Measure, Paper

_PARTS = {f"-{side}": [Measure(side, name, digits=2) for name in ("C_q", "C_B", "C_0")] for side in ("i2t", "t2i")}
_UNITS = (
    "C_q: negatives that count, per query, mean over queries with a count above zero; C_B: triplets that count, per "
    "batch; C_0: queries of a batch without any. corrected and released are ours."
)
build = Paper("bleeker2022", 2, "cocos", _PARTS, _UNITS).build
