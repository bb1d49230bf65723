"""How many negatives are probably relevant?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.known_pairs import KnownPairs
from lossscope.core.masks.base import BatchItems
from lossscope.core.types import LEAST_SUSPECT
from lossscope.engine import large_batches
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.probes.false_negatives import FalseNegatives
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


def random_images(k: int, q: int, c: int, images: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Return image rows of queries (k·q,) and candidates (k, c), few enough to coincide."""
    random = torch.Generator().manual_seed(7)
    return torch.randint(images, (k * q,), generator=random), torch.randint(images, (k, c), generator=random)


def with_images_and_keys(batches: Any, texts: int = 5) -> Any:
    """Return the rows of a stack with random image rows and input keys, few enough to coincide."""
    k, q, c = batches.match.shape
    of_queries, of_candidates = random_images(k, q, c)
    related = (of_queries.view(k, q, 1) == of_candidates[:, None]).flatten(0, 1)
    keys = torch.randint(texts, (k, c), generator=torch.Generator().manual_seed(8))
    return replace(batches.rows(), candidate_keys=keys, related=related)


@each("many", [False, True], "near", [-0.2, 0.5, 0.95])
def test_the_counts_equal_the_oracle(near: float, many: bool, oracle: Oracle) -> None:
    batches = lab.random_batches(many=many, d=2)
    rows = with_images_and_keys(batches)
    of_queries, of_candidates = random_images(*batches.match.shape)
    actual = lab.columns(lab.run(f"false_negatives:near={near}", rows))
    for b in range(3):
        for q in np.flatnonzero(~actual["skipped"][6 * b : 6 * b + 6]):
            expected = oracle("probes_false_negatives").counts(
                batches.S[b, q].tolist(),
                batches.match[b, q].tolist(),
                batches.valid[b, q].tolist(),
                int(of_queries[6 * b + q]),
                of_candidates[b].tolist(),
                rows.candidate_keys[b].tolist(),
                batches.candidates[b].tolist(),
                near,
            )
            assert {name: actual[name][6 * b + q] for name in expected} == expected


@each("many", [False, True])
def test_panels_give_the_same_results(many: bool) -> None:
    rows = with_images_and_keys(lab.random_batches(k=1, many=many, d=2))
    whole = lab.run("false_negatives:near=0.5", rows)
    for sizes in ([5, 1], [1, 2, 3]):
        parts = lab.run_in_panels("false_negatives:near=0.5", rows, sizes)
        lab.assert_same(lab.columns(parts), lab.columns(whole))


def test_by_hand() -> None:
    """Two pairs have image 3; images 5 and 7 have a caption in common; caption 3 is close to caption 0."""
    batch = lab.random_batches(k=1, q=4, c=4, d=4, gaps=False)
    captions = torch.eye(4, dtype=torch.float64)
    captions[3] = torch.nn.functional.normalize(captions[0] + 0.1 * captions[3], dim=0)
    batch = replace(batch, queries=torch.eye(4, dtype=torch.float64)[None], candidates=captions[None])
    images = torch.tensor([3, 3, 5, 7])
    keys = torch.tensor([[0, 1, 2, 2]])
    rows = replace(batch.rows(), related=images[:, None] == images[None], candidate_keys=keys)
    actual = lab.columns(lab.run("false_negatives", rows))
    assert actual["same_image"].tolist() == [1, 1, 0, 0]
    assert actual["duplicates"].tolist() == [0, 0, 1, 1]
    assert actual["outranking"].tolist() == [0, 0, 0, 0]
    assert actual["near"].tolist() == [1, 0, 0, 1]


def test_copies_of_the_same_image_are_no_duplicates() -> None:
    """In t2i, the image of two captions of the same image occurs twice, with the same key."""
    batch = replace(lab.random_batches(k=1, q=3, c=3, gaps=False), direction="t2i")
    images = torch.tensor([3, 3, 5])
    rows = replace(batch.rows(), related=images[:, None] == images[None], candidate_keys=images[None])
    actual = lab.columns(lab.run("false_negatives", rows))
    assert actual["same_image"].tolist() == [1, 1, 0]
    assert actual["duplicates"].tolist() == [0, 0, 0]


@settings(max_examples=15)
@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int]) -> None:
    batches = lab.random_batches(k=1, many=True, d=2)
    rows = with_images_and_keys(batches)
    moved = replace(
        batches.permute(queries, candidates).rows(),
        related=rows.related[queries][:, candidates],
        candidate_keys=rows.candidate_keys[:, candidates],
    )
    lab.assert_same(*(lab.measure("false_negatives:near=0.5", batch) for batch in (moved, rows)))


def test_unknown_counts_are_nan() -> None:
    rows = replace(with_images_and_keys(lab.random_batches()), candidate_keys=None, queries=None, candidates=None)
    actual = lab.measure("false_negatives", rows)
    assert np.isnan(actual["duplicates"]).all()
    assert np.isnan(actual["near"]).all()
    assert np.isfinite(actual["same_image"]).all()
    assert np.isnan(lab.measure("false_negatives", lab.random_batches())["same_image"]).all()


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    actual = lab.measure("false_negatives", with_images_and_keys(lab.degenerate(kind)))
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in kind:
        assert all(np.isnan(values).all() for values in actual.values())
    if "collapsed" in kind:
        assert actual["near"].tolist() == [6, 6]


@each("near", [-1, 1.01, float("nan")])
def test_a_threshold_that_is_no_cosine_raises(near: float) -> None:
    with pytest.raises(InputError, match=r"near must be a cosine in \(-1, 1\]"):
        FalseNegatives(near=near)


def test_exact_copies_are_near_at_one() -> None:
    """The product of a float32 vector with its copy is often 0.99999994."""
    batch = lab.random_batches(k=1, q=40, c=40, d=24, gaps=False)
    half = batch.candidates[:, :20].float()
    assert bool((torch.bmm(half, half.transpose(1, 2)).diagonal(dim1=1, dim2=2) < 1).any())
    rows = replace(batch, queries=batch.queries.float(), candidates=half.repeat(1, 2, 1)).rows()
    assert lab.columns(lab.run("false_negatives:near=1", rows))["near"].tolist() == [1] * 40


def test_an_audit_adds_the_number_of_false_negatives_to_expect(tmp_path: Path) -> None:
    ids = [f"q{row}" for row in range(40)], [f"d{row}" for row in range(60)]
    random = np.random.default_rng(0)
    keys = random.choice(40 * 60, 300, replace=False)
    probability = random.random(300).astype(np.float32)
    KnownPairs(keys // 60, keys % 60, probability, *map(tuple, ids)).write(tmp_path / "mask.npz")
    table = np.zeros((40, 60))
    table[keys // 60, keys % 60] = probability
    batches = lab.random_batches()
    k, q, c = batches.match.shape
    queries, candidates = random.integers(0, 40, k * q), random.integers(0, 60, (k, c))
    rows = replace(batches.rows(), items=BatchItems(*ids, queries, candidates))
    actual = lab.columns(lab.run(f"false_negatives:audit={tmp_path}", rows))["suspected"]
    negatives = rows.mask.negatives.numpy()
    for row in range(k * q):
        assert actual[row] == pytest.approx(
            (table[queries[row], candidates[row // q]] * negatives[row]).sum(), rel=1e-5
        )


def test_the_part_of_false_negatives_that_an_audit_lists_is_called_a_part() -> None:
    """The file lacks pairs below 0.05; on hard data they are more than half of the expected number."""
    text = " ".join(str(FalseNegatives.__doc__).split())
    assert f"the negatives that an audit lists, from {LEAST_SUSPECT} on" in text
    assert "a lower bound of the expected number" in text


def test_an_audit_is_looked_up_in_panels_of_a_large_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    vectors = [torch.nn.functional.normalize(torch.from_numpy(random.normal(size=(n, 8))), dim=1) for n in (30, 60)]
    ids = [f"q{row}" for row in range(30)], [f"d{row}" for row in range(60)]
    keys = random.choice(30 * 60, 300, replace=False)
    KnownPairs(keys // 60, keys % 60, random.random(300).astype(np.float32), *map(tuple, ids)).write(
        tmp_path / "mask.npz"
    )
    embedded = SplitEmbeddings("random", *vectors, None, np.repeat(np.arange(30), 2), *ids, fingerprint="")
    monkeypatch.setattr(large_batches, "PANEL", 700)
    probes = (f"false_negatives:audit={tmp_path}",)
    dense, tiled = (
        Sweep(("ntxent",), probes, batch_size=None, engine=engine, shuffle=True).run(embedded).summary
        for engine in ("dense", "tiled")
    )
    values = dense[dense["statistic"] == "suspected"]["mean"]
    assert len(values) == 2
    assert (values > 1).all()
    np.testing.assert_allclose(tiled[tiled["statistic"] == "suspected"]["mean"], values, rtol=1e-6)


def test_an_audit_is_of_the_items_of_two_sides(tmp_path: Path) -> None:
    empty = np.zeros(0, np.int64)
    KnownPairs(empty, empty, empty.astype(np.float32), ("a",), ("b",)).write(tmp_path / "mask.npz")
    with pytest.raises(InputError, match="looks items up by the ids of both sides"):
        lab.run(f"false_negatives:audit={tmp_path}", lab.random_batches().rows())
