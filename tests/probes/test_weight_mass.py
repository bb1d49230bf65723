"""How much counted weight is above and below the threshold, and on the positive?"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.probes.weight_mass import WeightMass
from lossscope.registry import build
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "triplet_sh", "unified:gamma=5", "smoothap:tau=0.3", "goal:pair=sig"]


@each("objective", OBJECTIVES, "eps", [0, 0.03, 1.5])
def test_the_statistics_equal_the_oracle(objective: str, eps: float, oracle: Oracle) -> None:
    batches = lab.random_batches(many=objective.startswith("smoothap"))
    actual = lab.measure(f"weight_mass:eps={eps}", batches, objective)
    for b, batch in enumerate(batches.single_batches()):
        rows = batch.rows()
        counted = build("objectives", objective).counted_weights(rows.S, rows.mask)
        usable = ~counted.skipped
        entries = counted.weights[usable].flatten(1).tolist()
        expected = oracle("probes_weights").mass(
            entries, counted.positive[usable].tolist(), counted.divisor[usable].tolist(), eps
        )
        assert {name: v[b] for name, v in actual.items()} == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_they_are_the_weights_of_cocos_where_it_reports_them() -> None:
    batches = lab.random_batches(gaps=False)
    ours, cocos = (lab.measure(f"{name}:eps=0.02", batches, "ntxent") for name in ("weight_mass", "cocos"))
    for name in ("W_neg", "W_low", "W_pos"):
        np.testing.assert_array_equal(ours[name], cocos[name])


@each("kind", lab.DEGENERATE, "objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(objective: str, kind: str) -> None:
    actual = lab.measure("weight_mass", lab.degenerate(kind), objective)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in kind:
        assert all(np.isnan(values).all() for values in actual.values())
    if "separated" in kind and objective == "triplet":
        assert np.isnan(actual["share_above"]).all()
        assert actual["W_neg"].tolist() == [0, 0]


def test_invalid_options_raise_before_any_work() -> None:
    with pytest.raises(InputError, match=r"eps must be a number >= 0; got -1"):
        WeightMass(eps=-1)
    with pytest.raises(InputError, match=r"convention of VLC must be one of corrected; got 'released'"):
        WeightMass(convention="released").check(build("objectives", "vlc"))
