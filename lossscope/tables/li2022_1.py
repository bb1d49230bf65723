"""Does the unified loss retrieve better than triplet_sh? Ours beside Table 1 of Li et al. (2022)."""

from __future__ import annotations

from ._paper import RETRIEVAL, UNITS, Paper

build = Paper("li2022_unified", 1, "recall", RETRIEVAL, UNITS).build
