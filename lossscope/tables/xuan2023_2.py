"""Is training by a gradient written directly as good as by the loss? Ours beside Table 2 of Xuan & Chen (2023).

Both are the hardest-negative triplet loss: triplet_sh, and goal with both weights constant.
"""

from __future__ import annotations

from ._paper import Measure, Paper

_R1 = [Measure(side, "R@1", better="higher") for side in ("i2t", "t2i")]

build = Paper("xuan2023_goal", 2, "recall", {"": _R1}, "R@1 in %.").build
