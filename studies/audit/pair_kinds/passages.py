"""Read the passages of the library: each has several facts of a person, and some answer a query without a label."""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.registry import build

from .base import DataSet, by_table

KIND = "passages"
SPECS = (
    "passages:train=600,seed=1,negatives=0",
    "passages:train=600,seed=2,negatives=0,false_negatives=0,duplicates=0,mined_answers=0",
    "passages:train=600,seed=3,negatives=0,false_negatives=0.5,facts=2",
    "passages:train=600,seed=4,negatives=4,false_negatives=0.3",
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for spec in SPECS:
        split = build("datasets", spec).split("train")
        yield DataSet(KIND, spec, split, by_table(split.truth()))
