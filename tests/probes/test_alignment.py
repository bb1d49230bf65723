"""Is alignment the squared distance of queries and their positives?"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


@each("many", [False, True])
def test_the_statistic_equals_the_oracle(many: bool, oracle: Oracle) -> None:
    batches = lab.random_batches(many=many)
    actual = lab.measure("alignment", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_ranks").alignment(batch.S[0].numpy(), batch.match[0].numpy(), batch.valid[0].numpy())
        assert {name: v[b] for name, v in actual.items()} == pytest.approx(expected, rel=1e-12)


def test_it_is_a_squared_distance_of_unit_vectors() -> None:
    batch = lab.random_batches(k=1, gaps=False)
    difference = batch.queries[0] - batch.candidates[0, :6]
    assert lab.columns(lab.run("alignment", batch))["alignment"] == pytest.approx(difference.square().sum(1).numpy())


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    (values,) = lab.measure("alignment", lab.degenerate(kind)).values()
    expected = {"all skipped": np.nan, "collapsed": 0, "separated": 0, "opposite": 4}
    assert not np.isinf(values).any()
    for name, value in expected.items():
        if name in kind:
            assert values == pytest.approx(value, abs=1e-5, nan_ok=True)
