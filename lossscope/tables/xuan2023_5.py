"""Which triplet weight goes with which pair weight, VSE∞? Table 5 of Xuan & Chen (2023), beside ours."""

from __future__ import annotations

from ._goal import Grid

build = Grid(5).build
