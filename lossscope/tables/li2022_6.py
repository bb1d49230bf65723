"""How does the unified loss compare on more methods, COCO 5K? Ours beside Table 6 of Li et al. (2022)."""

from __future__ import annotations

from ._paper import RETRIEVAL, UNITS, Paper

build = Paper("li2022_unified", 6, "recall", RETRIEVAL, UNITS).build
