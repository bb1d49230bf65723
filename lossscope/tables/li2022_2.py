"""Does the unified loss fine-tune CLIP better than CLIP's own loss? Ours beside Table 2 of Li et al. (2022)."""

from __future__ import annotations

from ._paper import RETRIEVAL, UNITS, Paper

build = Paper("li2022_unified", 2, "recall", RETRIEVAL, UNITS).build
