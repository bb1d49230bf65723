"""Which triplet and pair weights retrieve best, VSE∞? Ours beside Table 5 of Xuan & Chen (2023)."""

from __future__ import annotations

from ._goal import Grid

build = Grid(5).build
