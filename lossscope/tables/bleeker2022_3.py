"""How many negatives does NT-Xent count, with which weight? Ours beside Table 3 of Bleeker & de Rijke (2022)."""

from __future__ import annotations

from ._paper import Measure, Paper

_PARTS = {
    f"-{side}": [Measure(side, name, digits=2) for name in ("C_neg", "W_neg", "W_pos")] for side in ("i2t", "t2i")
}
_UNITS = (
    "Per query: C_neg: negatives whose weight is above eps; W_neg: their weight together; W_pos: weight of the "
    "positive; weights in [0, 1], without 1/tau. corrected and released are ours."
)
build = Paper("bleeker2022", 3, "cocos", _PARTS, _UNITS).build
