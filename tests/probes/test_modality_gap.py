"""The distance between the two sides' means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError

Oracle = Callable[[str], ModuleType]


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_are_those_of_the_means(seed: int, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(seed)
    batches = replace(batches, candidates=2 * batches.candidates)  # any length will do
    found = lab.ask("modality_gap", batches)
    for b, one in enumerate(batches.alone()):
        expected = oracle("probes_vectors").modality_gap(one.queries[0].numpy(), one.candidates[0].numpy())
        assert {name: v[b] for name, v in found.items()} == pytest.approx(expected, rel=1e-12)


def test_stacks_and_panels_change_nothing(lab: Any) -> None:
    lab.however_cut("modality_gap", lab.drawn())


def test_both_directions_give_the_same(lab: Any) -> None:
    one = lab.drawn(c=6, gaps=False)
    other = replace(one, queries=one.candidates, candidates=one.queries, direction="t2i")
    lab.same(lab.ask("modality_gap", one), lab.ask("modality_gap", other))


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn()
    lab.same(lab.ask("modality_gap", batches.in_order(queries, candidates)), lab.ask("modality_gap", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    found = lab.ask("modality_gap", degenerate)
    assert not any(np.isinf(values).any() for values in found.values())
    if "collapsed" in request.node.name:
        assert found["gap"] == pytest.approx([0, 0], abs=1e-6)
        assert found["gap_cosine"] == pytest.approx([1, 1])


def test_a_mean_of_zero_has_no_direction(lab: Any) -> None:
    one = lab.drawn(k=1, q=2, c=2, d=2, gaps=False)
    around = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    found = lab.ask("modality_gap", replace(one, queries=around, candidates=around))
    assert found["gap"].tolist() == [0]
    assert np.isnan(found["gap_cosine"]).all()


def test_similarities_alone_are_refused(lab: Any) -> None:
    rows = replace(lab.drawn().rows(), queries=None, candidates=None)
    with pytest.raises(InputError, match=r"this probe needs embeddings, and the source has similarities only"):
        lab.ask("modality_gap", rows)
