"""How many triplets does SmoothAP count? Ours beside Table 4 of Bleeker & de Rijke (2022)."""

from __future__ import annotations

from ._paper import Measure, Paper

_PARTS = {f"-{side}": [Measure(side, name, digits=2) for name in ("C_q", "C_0")] for side in ("i2t", "t2i")}
_UNITS = (
    "C_q: triplets whose weight is above eps, per query and divided by its positives, mean over queries with a count "
    "above zero; C_0: queries of a batch without any. corrected, released and text are ours."
)
_TEXT = (
    "text: the weight carries the factor 1/tau, as printed (E3); corrected and released are without it, as released."
)
build = Paper("bleeker2022", 4, "cocos", _PARTS, _UNITS, notes=(_TEXT,)).build
