"""Does a reduction of many results together equal the reduction of each result alone?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.similarity import Mask, pair_mask
from lossscope.engine.reducers import reduce_column
from lossscope.engine.run_probes import ProbePlan, ProbeResult
from lossscope.engine.statistics import batch_statistics
from lossscope.probes.base import ReducerName, Statistic
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build, names

REDUCERS: tuple[ReducerName, ...] = (
    "mean", "mean_nonzero", "sum", "zeros", "std", "min", "max", "q10", "q50", "q90", "floor_median"
)  # fmt: skip
OBJECTIVES = ("ntxent", "triplet", "triplet_sh", "multi_similarity")
PROBES = (
    "cocos",
    "cocos:eps=0.2,curve=true",
    "weight_mass",
    "contributors",
    "similarity",
    "recall",
    "hubness",
    "alignment",
)


def results_of_stack(batches: int, size: int, skipping: bool) -> list[ProbeResult]:
    """Return the results of all probes on a stack of pairs; with `skipping`, some pairs have no positive."""
    S = torch.rand(batches * size, size, generator=torch.Generator().manual_seed(batches))
    mask = pair_mask(torch.arange(size))
    match, valid = mask.match.repeat(batches, 1), mask.valid.repeat(batches, 1)
    if skipping:
        match = match.clone()
        match[::3] = False
    shape = BatchShape(batches, "i2t", torch.arange(len(S)), torch.arange(batches * size).view(batches, size))
    plan = ProbePlan.of([build("objectives", o) for o in OBJECTIVES], [build("probes", p) for p in PROBES])
    return plan.run(DenseRows(shape, S, Mask(match, valid)))


@pytest.mark.parametrize("skipping", [False, True])
def test_results_reduced_together_equal_each_alone(skipping: bool) -> None:
    results = [*results_of_stack(3, 5, skipping), *results_of_stack(2, 8, not skipping), *results_of_stack(4, 5, False)]
    for result, together in zip(results, batch_statistics(results), strict=True):
        columns, k = result.columns, result.shape.batches
        assert list(together) == [s.name for s in result.statistics()]
        for statistic in result.statistics():
            expected = reduce_column(statistic, columns, k).numpy()
            np.testing.assert_allclose(together[statistic.name], expected, rtol=1e-12, err_msg=statistic.name)
    assert batch_statistics([]) == []


VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, float("nan"), float("inf"), -float("inf")]), st.floats(-1e6, 1e6, width=32)
)


@pytest.mark.parametrize("reducer", REDUCERS)
@given(data=st.data())
def test_columns_without_skipped_queries_give_the_same_in_fewer_passes(reducer: ReducerName, data: Any) -> None:
    """With and without an all-False column `skipped`; NaN in some batches only."""
    batches, size = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 25))
    x = torch.tensor(data.draw(st.lists(VALUES, min_size=batches * size, max_size=batches * size)))
    statistic = Statistic("x", "x", reducer, "1")
    short = reduce_column(statistic, {"x": x}, batches)
    whole = reduce_column(statistic, {"x": x, "skipped": torch.zeros(len(x), dtype=torch.bool)}, batches)
    np.testing.assert_allclose(short.numpy(), whole.numpy(), rtol=1e-12, atol=1e-9)


def test_every_cheap_probe_is_among_them() -> None:
    assert {name for name in names("probes") if build("probes", name).cheap} <= {p.partition(":")[0] for p in PROBES}
