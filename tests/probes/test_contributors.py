"""Over how many negatives is the weight distributed?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.probes.contributors import Contributors
from lossscope.registry import build
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "triplet_sh", "smoothap:tau=0.3"]


@each("objective", OBJECTIVES, "seed", range(3))
def test_the_statistics_equal_the_oracle(seed: int, objective: str, oracle: Oracle) -> None:
    batches = lab.random_batches(seed, q=8, c=12, many=objective.startswith("smoothap"))
    actual = lab.measure("contributors", batches, objective)
    for b, batch in enumerate(batches.single_batches()):
        rows = batch.rows()
        counted = build("objectives", objective).counted_weights(rows.S, rows.mask)
        expected = oracle("probes_weights").contributors(counted.weights[~counted.skipped].flatten(1).tolist())
        assert {name: v[b] for name, v in actual.items()} == pytest.approx(expected, rel=1e-9, nan_ok=True)


@given(weights=st.lists(st.floats(0, 1), min_size=2, max_size=12).filter(lambda w: sum(w) > 1e-3))
def test_how_the_numbers_bound_each_other(weights: list[float]) -> None:
    """1 <= N_eff <= perplexity <= number of entries (Hill numbers decrease with their order); 1 / N_eff <= top1."""
    batch = lab.random_batches(k=1, q=1, c=len(weights) + 1, d=1, gaps=False)
    S = torch.tensor([0.0, *weights], dtype=torch.float64).log().clamp(min=-700)
    batch = replace(batch, queries=torch.ones(1, 1, 1, dtype=torch.float64), candidates=S[None, :, None])
    actual = {name: float(v[0]) for name, v in lab.measure("contributors", batch, "ntxent:tau=1").items()}
    assert 1 - 1e-9 <= actual["N_eff"] <= actual["perplexity"] * (1 + 1e-9) <= len(weights) * (1 + 2e-9)
    assert 1 / actual["N_eff"] <= actual["top1"] * (1 + 1e-9) <= actual["top5"] * (1 + 2e-9) <= 1 + 3e-9


def test_n_eff_of_equal_weights_is_their_number() -> None:
    batch = lab.random_batches(k=1, q=2, c=7, gaps=False)
    batch = replace(
        batch, queries=batch.queries[:, :1].expand(1, 2, 4), candidates=batch.queries[:, :1].expand(1, 7, 4)
    )
    actual = lab.measure("contributors", batch, "ntxent")
    assert actual["N_eff"] == pytest.approx([6])
    assert actual["perplexity"] == pytest.approx([6])
    assert actual["top1"] == pytest.approx([1 / 6])
    assert actual["top5"] == pytest.approx([5 / 6])


def test_weights_whose_squares_underflow_are_still_counted() -> None:
    """Squares of softmax probabilities of e^-60 underflow in float32."""
    batch = lab.random_batches(k=1, q=1, c=4, d=1, gaps=False)
    candidates = torch.tensor([0.9, 0.3, 0.3, 0.3])[None, :, None]
    batch = replace(batch, queries=torch.ones(1, 1, 1), candidates=candidates)
    actual = lab.measure("contributors", batch, "ntxent:tau=0.01")
    assert actual["N_eff"] == pytest.approx([3], rel=1e-5)
    assert actual["perplexity"] == pytest.approx([3], rel=1e-5)


@each("kind", lab.DEGENERATE, "objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(objective: str, kind: str) -> None:
    actual = lab.measure("contributors", lab.degenerate(kind), objective)
    assert not any(np.isinf(values).any() for values in actual.values())
    nothing = "all skipped" in kind or ("separated" in kind and "triplet" in objective)
    if nothing:
        assert all(np.isnan(values).all() for values in actual.values())
    elif "one negative" in kind and objective == "ntxent":
        assert all(values.tolist() == pytest.approx([1, 1]) for values in actual.values())


def test_an_unsupported_convention_raises() -> None:
    with pytest.raises(InputError, match=r"convention of VLC must be one of corrected; got 'released'"):
        Contributors(convention="released").check(build("objectives", "vlc"))
