"""How similar are positives and hardest negatives?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch

from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


@each("many", [False, True], "seed", range(5))
def test_the_statistics_equal_the_oracle(seed: int, many: bool, oracle: Oracle) -> None:
    batches = lab.random_batches(seed, many=many)
    actual = lab.measure("similarity", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_ranks").similarity(batch.S[0].numpy(), batch.match[0].numpy(), batch.valid[0].numpy())
        assert {name: values[b] for name, values in actual.items()} == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    batch = lab.random_batches(k=1, q=2, c=3, d=3, gaps=False)
    S = torch.tensor([[0.5, 0.25, 0.75], [0.0, 0.875, 0.375]], dtype=torch.float64)
    batch = replace(batch, queries=S[None], candidates=torch.eye(3, dtype=torch.float64)[None])
    actual = lab.columns(lab.run("similarity", batch))
    assert actual["positive"].tolist() == [0.5, 0.875]
    assert actual["hardest"].tolist() == [0.75, 0.375]
    assert actual["margin"].tolist() == [-0.25, 0.5]
    assert actual["inverted"].tolist() == [1, 0]
    assert lab.measure("similarity", batch)["inverted"] == [0.5]


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    actual = lab.measure("similarity", lab.degenerate(kind))
    assert not any(np.isinf(values).any() for values in actual.values())
    skipped = "all skipped" in kind
    assert all(np.isnan(values).all() == skipped for values in actual.values())


def test_it_runs_once_for_all_objectives() -> None:
    actual = lab.run("similarity", lab.random_batches())
    assert actual.objective is None
    assert len(lab.measure("similarity", lab.random_batches(), "triplet")["s_pos"]) == 3
