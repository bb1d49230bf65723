"""Which triplet and pair weights retrieve best, VSE++ (ResNet152)? Ours beside Table 3 of Xuan & Chen (2023)."""

from __future__ import annotations

from ._goal import GoalGrids

build = GoalGrids(3).build
