"""How far apart are the means of the two sides?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch

from lossscope.errors import InputError
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


@each("seed", range(3))
def test_the_statistics_equal_the_oracle(seed: int, oracle: Oracle) -> None:
    batches = lab.random_batches(seed)
    batches = replace(batches, candidates=2 * batches.candidates)  # the length must not matter
    actual = lab.measure("modality_gap", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_vectors").modality_gap(batch.queries[0].numpy(), batch.candidates[0].numpy())
        assert {name: v[b] for name, v in actual.items()} == pytest.approx(expected, rel=1e-12)


def test_both_directions_give_the_same() -> None:
    batch = lab.random_batches(c=6, gaps=False)
    other = replace(batch, queries=batch.candidates, candidates=batch.queries, direction="t2i")
    lab.assert_same(lab.measure("modality_gap", batch), lab.measure("modality_gap", other))


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    actual = lab.measure("modality_gap", lab.degenerate(kind))
    assert not any(np.isinf(values).any() for values in actual.values())
    if "collapsed" in kind:
        assert actual["gap"] == pytest.approx([0, 0], abs=1e-6)
        assert actual["gap_cosine"] == pytest.approx([1, 1])


def test_a_mean_of_zero_has_no_direction() -> None:
    batch = lab.random_batches(k=1, q=2, c=2, d=2, gaps=False)
    around = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    actual = lab.measure("modality_gap", replace(batch, queries=around, candidates=around))
    assert actual["gap"].tolist() == [0]
    assert np.isnan(actual["gap_cosine"]).all()


def test_similarities_alone_raise() -> None:
    rows = replace(lab.random_batches().rows(), queries=None, candidates=None)
    with pytest.raises(InputError, match=r"this probe needs embeddings, and the source has similarities only"):
        lab.measure("modality_gap", rows)
