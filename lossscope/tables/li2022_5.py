"""How does the unified loss compare on more methods, Flickr30k and COCO 1K? Ours beside Table 5 of Li et al. (2022)."""

from __future__ import annotations

from ._paper import RETRIEVAL, UNITS, Paper

build = Paper("li2022_unified", 5, "recall", RETRIEVAL, UNITS).build
