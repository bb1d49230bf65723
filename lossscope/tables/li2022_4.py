"""Does the unified loss retrieve video and text better? Ours beside Table 4 of Li et al. (2022).

Here i2t is video to text, t2i text to video.
"""

from __future__ import annotations

from ._paper import RETRIEVAL, UNITS, Paper

build = Paper("li2022_unified", 4, "recall", RETRIEVAL, UNITS).build
