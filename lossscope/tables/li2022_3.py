"""How does the unified loss compare with other losses? Ours beside Table 3 of Li et al. (2022)."""

from __future__ import annotations

from ._paper import Measure, Paper

_RECALLS = [Measure(side, f"R@{k}", better="higher") for side in ("i2t", "t2i") for k in (1, 5)]

build = Paper("li2022_unified", 3, "recall", {"": _RECALLS}, "Recall in %.").build
