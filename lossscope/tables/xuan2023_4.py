"""Which triplet and pair weights retrieve best, VSE++ (ViT)? Ours beside Table 4 of Xuan & Chen (2023)."""

from __future__ import annotations

from ._goal import GoalGrids

build = GoalGrids(4).build
