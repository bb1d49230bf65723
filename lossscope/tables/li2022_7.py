"""How does the unified loss compare with other losses, all recalls? Ours beside Table 7 of Li et al. (2022)."""

from __future__ import annotations

from ._paper import RETRIEVAL, UNITS, Paper

build = Paper("li2022_unified", 7, "recall", RETRIEVAL, UNITS).build
