"""Names of the metrics that runs are compared on; imports nothing heavy: the command line offers them at once."""

from __future__ import annotations

from lossscope.core.types import DIRECTIONS

CUTOFFS = (1, 5, 10)  # k of R@k

RECALLS = ("rsum", *(f"{direction}_R@{k}" for direction in DIRECTIONS for k in CUTOFFS))
METRICS = (
    "rsum",
    *(f"{direction}_{name}" for direction in DIRECTIONS for name in (*(f"R@{k}" for k in CUTOFFS), "MRR", "mAP@5")),
)
