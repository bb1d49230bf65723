"""Draw scenes with captions, which are true of other scenes as often as `ambiguity` lets them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lossscope.registry import build

from .base import DataSet, by_table

KIND = "scenes"
SPECS = tuple(
    f"scenes:train={n},val=2,test=2,size=16,ambiguity={ambiguity},seed={seed}"
    for seed, (n, ambiguity) in enumerate(((400, 0.1), (400, 0.25), (400, 0.4), (300, 0.7), (500, 0.3)))
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for spec in SPECS:
        split = build("datasets", spec).split("train")
        yield DataSet(KIND, spec, split, by_table(np.ascontiguousarray(split.truth().T)))
