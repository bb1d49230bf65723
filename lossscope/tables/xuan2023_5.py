"""Which triplet and pair weights retrieve best, VSE∞? Ours beside Table 5 of Xuan & Chen (2023)."""

from __future__ import annotations

from ._goal import GoalGrids

build = GoalGrids(5).build
