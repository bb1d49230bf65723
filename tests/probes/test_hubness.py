"""How often is each candidate the hardest negative?"""

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


@each("q, c", [(6, 7), (30, 4), (9, 250)], "many", [False, True])
def test_the_statistics_equal_the_oracle(q: int, c: int, many: bool, oracle: Oracle) -> None:
    batches = lab.random_batches(q=q, c=c, many=many)
    actual = lab.measure("hubness", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_ranks").hubness(batch.S[0].numpy(), batch.match[0].numpy(), batch.valid[0].numpy())
        assert {name: v[b] for name, v in actual.items()} == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_by_hand() -> None:
    batch = lab.random_batches(k=1, q=4, c=4, d=4, gaps=False)
    S = torch.tensor([[9, 1, 8, 0], [0, 9, 8, 1], [8, 1, 9, 0], [0, 1, 8, 9]], dtype=torch.float64) / 10
    batch = replace(batch, queries=S[None], candidates=torch.eye(4, dtype=torch.float64)[None])
    actual = lab.measure("hubness", batch)  # chosen: 1, 0, 3, 0
    assert (actual["hub_max_count"], actual["never_hardest"], actual["hub_share"]) == (3, 0.5, 0.75)
    assert actual["hub_skewness"] == pytest.approx([(8 - 1 - 1) / 4 / 1.5**1.5])


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    actual = lab.measure("hubness", lab.degenerate(kind))
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in kind:
        assert all(np.isnan(values).all() for values in actual.values())
    if "one negative" in kind:
        assert np.isnan(actual["hub_skewness"]).all()
        assert actual["hub_share"].tolist() == [0.5, 0.5]
