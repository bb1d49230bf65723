"""Negatives that are probably right answers."""

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
from lossscope.probes.false_negatives import FalseNegatives

Oracle = Callable[[str], ModuleType]


def known(batches: Any, images: int = 4, texts: int = 5) -> Any:
    """The stack's rows with an image of every item and keys of every input, few enough to coincide."""
    k, q, c = batches.match.shape
    random = torch.Generator().manual_seed(7)
    draw = {"query_groups": (k * q,), "candidate_groups": (k, c)}
    groups = {name: torch.randint(images, shape, generator=random) for name, shape in draw.items()}
    return replace(batches.rows(), candidate_keys=torch.randint(texts, (k, c), generator=random), **groups)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("near", [-0.2, 0.5, 0.95])
def test_the_counts_are_those_of_pairs_one_at_a_time(near: float, many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(many=many, d=2)
    rows = known(batches)
    found = lab.columns(lab.found(f"false_negatives:near={near}", rows))
    for b in range(3):
        for q in np.flatnonzero(~found["skipped"][6 * b : 6 * b + 6]):
            expected = oracle("probes_false_negatives").counts(
                batches.S[b, q].tolist(),
                batches.match[b, q].tolist(),
                batches.valid[b, q].tolist(),
                int(rows.query_groups[6 * b + q]),
                rows.candidate_groups[b].tolist(),
                rows.candidate_keys[b].tolist(),
                batches.candidates[b].tolist(),
                near,
            )
            assert {name: found[name][6 * b + q] for name in expected} == expected


@pytest.mark.parametrize("many", [False, True])
def test_panels_change_nothing(many: bool, lab: Any) -> None:
    rows = known(lab.drawn(k=1, many=many, d=2))
    alone = lab.found("false_negatives:near=0.5", rows)
    for sizes in ([5, 1], [1, 2, 3]):
        parts = lab.joined_panels("false_negatives:near=0.5", rows, sizes)
        lab.same(lab.columns(parts), lab.columns(alone))


def test_by_hand(lab: Any) -> None:
    """Two pairs of image 3, then images 5 and 7, which have one caption in common; caption 3 lies beside caption 0."""
    one = lab.drawn(k=1, q=4, c=4, d=4, gaps=False)
    captions = torch.eye(4, dtype=torch.float64)
    captions[3] = torch.nn.functional.normalize(captions[0] + 0.1 * captions[3], dim=0)
    one = replace(one, queries=torch.eye(4, dtype=torch.float64)[None], candidates=captions[None])
    images = torch.tensor([3, 3, 5, 7])
    keys = torch.tensor([[0, 1, 2, 2]])
    rows = replace(one.rows(), query_groups=images, candidate_groups=images[None], candidate_keys=keys)
    found = lab.columns(lab.found("false_negatives", rows))
    assert found["same_image"].tolist() == [1, 1, 0, 0]
    assert found["duplicates"].tolist() == [0, 0, 1, 1]
    assert found["outranking"].tolist() == [0, 0, 0, 0]
    assert found["near"].tolist() == [1, 0, 0, 1]


def test_copies_of_the_same_image_are_told_as_such_only(lab: Any) -> None:
    """t2i: the image of two captions of one image is there twice, with one key."""
    one = replace(lab.drawn(k=1, q=3, c=3, gaps=False), direction="t2i")
    images = torch.tensor([3, 3, 5])
    rows = replace(one.rows(), query_groups=images, candidate_groups=images[None], candidate_keys=images[None])
    found = lab.columns(lab.found("false_negatives", rows))
    assert found["same_image"].tolist() == [1, 1, 0]
    assert found["duplicates"].tolist() == [0, 0, 0]


@pytest.mark.slow
@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn(k=1, many=True, d=2)
    rows = known(batches)
    moved = replace(
        batches.in_order(queries, candidates).rows(),
        query_groups=rows.query_groups[queries],
        candidate_groups=rows.candidate_groups[:, candidates],
        candidate_keys=rows.candidate_keys[:, candidates],
    )
    lab.same(*(lab.ask("false_negatives:near=0.5", one) for one in (moved, rows)))


def test_what_nobody_knows_is_undefined_and_not_none(lab: Any) -> None:
    rows = replace(known(lab.drawn()), candidate_keys=None, queries=None, candidates=None)
    found = lab.ask("false_negatives", rows)
    assert np.isnan(found["duplicates"]).all()
    assert np.isnan(found["near"]).all()
    assert np.isfinite(found["same_image"]).all()
    assert np.isnan(lab.ask("false_negatives", lab.drawn())["same_image"]).all()


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    found = lab.ask("false_negatives", known(degenerate))
    assert not any(np.isinf(values).any() for values in found.values())
    if "all skipped" in request.node.name:
        assert all(np.isnan(values).all() for values in found.values())
    if "collapsed" in request.node.name:
        assert found["near"].tolist() == [6, 6]


@pytest.mark.parametrize("near", [-1, 1.01, float("nan")])
def test_a_threshold_that_is_no_cosine_is_refused(near: float) -> None:
    with pytest.raises(InputError, match=r"near must be a cosine in \(-1, 1\]"):
        FalseNegatives(near=near)


def test_exact_copies_are_near_at_one(lab: Any) -> None:
    """The product of a float32 vector with its copy is 0.99999994 for many of them."""
    one = lab.drawn(k=1, q=40, c=40, d=24, gaps=False)
    half = one.candidates[:, :20].float()
    assert bool((torch.bmm(half, half.transpose(1, 2)).diagonal(dim1=1, dim2=2) < 1).any())
    rows = replace(one, queries=one.queries.float(), candidates=half.repeat(1, 2, 1)).rows()
    assert lab.columns(lab.found("false_negatives:near=1", rows))["near"].tolist() == [1] * 40
