"""Which triplet weight goes with which pair weight, VSE++ (ViT)? Table 4 of Xuan & Chen (2023), beside ours."""

from __future__ import annotations

from ._goal import Grid

build = Grid(4).build
