"""Where does the positive rank within a batch?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch

from lossscope.retrieval.metrics import retrieve
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


@each("many", [False, True], "seed", range(5))
def test_the_statistics_equal_the_oracle(seed: int, many: bool, oracle: Oracle) -> None:
    batches = lab.random_batches(seed, q=7, c=12, many=many)
    actual = lab.measure("recall", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_ranks").recall(batch.S[0].numpy(), batch.match[0].numpy(), batch.valid[0].numpy())
        assert {name: values[b] for name, values in actual.items()} == pytest.approx(expected, abs=1e-12)


@each("k", [1, 3], "images", [20, 21])
def test_a_batch_of_a_whole_split_has_the_recall_of_the_protocol(images: int, k: int) -> None:
    batch = lab.random_batches(k=1, q=images, c=images * k, d=3, gaps=False)
    owner = np.repeat(np.arange(images), k)
    match = torch.from_numpy(np.arange(images)[:, None] == owner[None, :])[None]
    batch = replace(batch, match=match, valid=torch.ones_like(match))
    expected = retrieve(batch.S[0], owner)[0].statistics()
    actual = lab.measure("recall", batch)
    assert {name: float(values[0]) for name, values in actual.items()} == pytest.approx(
        {name: expected[name] for name in actual}
    )


def test_ties_are_counted_and_do_not_change_the_rank() -> None:
    S = torch.tensor([[0.5, 0.5, 0.75], [0.0, 0.875, 0.375]], dtype=torch.float64)
    batch = lab.random_batches(k=1, q=2, c=3, d=3, gaps=False)
    batch = replace(batch, queries=S[None], candidates=torch.eye(3, dtype=torch.float64)[None])
    assert lab.columns(lab.run("recall", batch))["rank"].tolist() == [2, 1]
    actual = lab.measure("recall", batch)
    assert (actual["ties"], actual["R@1"], actual["R@5"], actual["MRR"]) == (1, 50, 100, 0.75)


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    actual = lab.measure("recall", lab.degenerate(kind))
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in kind:
        assert actual.pop("ties").tolist() == [0, 0]
        assert all(np.isnan(values).all() for values in actual.values())
    if "collapsed" in kind:
        assert actual["R@1"].tolist() == [100, 100]
        assert actual["ties"].tolist() == [6, 6]
