"""Is the floor of a loss that of a perfect model: log(1 + m) of a softmax, the margin of a hinge?"""

from __future__ import annotations

import numpy as np
import pytest

from lossscope.audit.estimate import loss_floor as floors
from lossscope.audit.estimate.calibration import Calibration
from lossscope.audit.estimate.loss_floor import LossFloor, loss_floor
from lossscope.audit.estimate.rates import BatchPairs
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.core.relations import Relations
from lossscope.errors import InputError
from lossscope.registry import build
from tests.audit.small import certain
from tests.oracles.false_negative_floor import expected_log

RELATIONS = Relations.of_captions(np.repeat(np.arange(60), 2), 60)


def sample(p: np.ndarray | None = None, seed: int = 0) -> BatchPairs:
    """Return batches of 20 pairs; a tenth of the negatives matches, or each with a probability in `p`."""
    batches = random_batches(RELATIONS, 20, 0)[:5]
    pairs, negative = pairs_of(batches, RELATIONS)
    random = np.random.default_rng(seed)
    if p is None:
        Z = np.where(random.random(len(pairs)) < 0.1, 1.0, -1.0)
    else:
        drawn = random.choice(p, len(pairs))
        Z = np.log(drawn / (1 - drawn))
    return BatchPairs(batches, negative, Z[:, None], np.zeros(len(pairs), np.int64))


def floor(pairs: BatchPairs, calibration: Calibration, spec: str, threshold: float = 0.5) -> LossFloor:
    return loss_floor(pairs, RELATIONS, calibration, threshold, build("objectives", spec), spec)


def blocks(pairs: BatchPairs, calibration: Calibration) -> list[np.ndarray]:
    """Return the probabilities of the rows of both directions."""
    return [side for block in pairs.of_batches(pairs.probabilities(calibration)) for side in (block, block.T)]


@pytest.mark.parametrize("spec", ["ntxent:tau=0.05", "infonce:tau=0.05"])
def test_of_a_softmax_it_is_the_mean_of_log_1_plus_m(spec: str) -> None:
    pairs = sample()
    expected = np.mean([np.log1p(block.sum(1)).mean() for block in blocks(pairs, certain())])
    found = floor(pairs, certain(), spec)
    assert found.counted.value == pytest.approx(expected, rel=1e-5)
    assert found.counted.value > 0.3
    assert found.masked.value == pytest.approx(0, abs=1e-5)
    assert found.without == pytest.approx(0, abs=1e-5)
    assert (found.counted.low, found.counted.high) == (None, None)


def test_of_probabilities_it_is_the_expectation_over_the_poisson_binomial() -> None:
    pairs = sample(np.array([0.02, 0.3]))
    logits = Calibration(("a",), np.array([0.0, 1.0]))
    expected = np.mean([np.mean([expected_log(row[row > 0]) for row in block]) for block in blocks(pairs, logits)])
    rest = np.mean(
        [np.mean([expected_log(row[(row > 0) & (row < 0.1)]) for row in block]) for block in blocks(pairs, logits)]
    )
    found = floor(pairs, logits, "ntxent:tau=0.05", threshold=0.1)
    assert found.counted.value == pytest.approx(expected, rel=0.03)
    assert found.masked.value == pytest.approx(rest, rel=0.15)
    assert rest < expected / 5


def test_of_a_hinge_it_is_the_margin_of_each_query_with_one() -> None:
    pairs = sample()
    share = np.mean([(block.sum(1) > 0).mean() for block in blocks(pairs, certain())])
    found = floor(pairs, certain(), "triplet-sh:margin=0.3")
    assert found.counted.value == pytest.approx(0.3 * share, rel=1e-5)
    assert found.without == 0


def test_the_interval_is_of_the_draws_of_the_weights() -> None:
    draws = np.stack([np.linspace(-1, 1, 101), np.ones(101)], 1)
    found = floor(sample(np.array([0.02, 0.3])), Calibration(("a",), np.array([0.0, 1.0]), draws), "ntxent:tau=0.05")
    assert found.counted.low is not None and found.counted.high is not None
    assert found.counted.low < found.counted.value < found.counted.high
    assert found.counted.high > 1.5 * found.counted.low


def test_of_large_batches_draws_take_other_queries_and_all_of_their_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = sample()
    whole = floor(pairs, certain(), "ntxent:tau=0.05")
    monkeypatch.setattr(floors, "_PAIRS", 7 * 20 * 5)  # 7 of the 20 queries of each of 5 batches
    found = floor(pairs, certain(), "ntxent:tau=0.05")
    assert found.counted.value != whole.counted.value
    assert found.counted.value == pytest.approx(whole.counted.value, rel=0.06)
    monkeypatch.setattr(floors, "_TRUTHS", 1)  # without the other draws, the floor is of 7 queries alone
    of_few = floor(pairs, certain(), "ntxent:tau=0.05").counted.value
    assert abs(of_few - whole.counted.value) > abs(found.counted.value - whole.counted.value)


@pytest.mark.parametrize("spec", ["lifted-structure:form=pair", "lifted-structure:form=anchor"])
def test_where_rows_depend_on_each_other_batches_stay_whole(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = floor(sample(), certain(), spec)
    monkeypatch.setattr(floors, "_PAIRS", 7 * 20 * 5)
    assert (floor(sample(), certain(), spec) == whole) == build("objectives", spec).coupled


def test_an_objective_without_a_loss_or_with_other_inputs_has_none() -> None:
    with pytest.raises(InputError, match="must have a loss; it states its gradient alone"):
        floor(sample(), certain(), "goal")
    with pytest.raises(InputError, match="must be a function of similarities; it reads more"):
        floor(sample(), certain(), "aoq")
