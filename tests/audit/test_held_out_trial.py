"""Does the trial see that a mask helps with planted false negatives, and not without any, and say so?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import average_precision_score

from lossscope.audit.estimate import held_out_trial as trials
from lossscope.audit.estimate.held_out_trial import (
    MEASURES,
    RANKINGS,
    Answers,
    Difference,
    Ranking,
    Trial,
    TrialItems,
    crossed_interval,
    held_out_trial,
)
from lossscope.audit.output.worth_text import verdict
from lossscope.audit.parts.text_space import TextSpace
from lossscope.audit.steps import worth
from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.worth import trial_vectors
from lossscope.audit.types import State
from lossscope.core.relations import Relations
from lossscope.errors import InputError
from lossscope.registry import build

N, TWINS = 240, 24  # queries, and those that say the same thing

STATES: tuple[State, ...] = ("calibrated", "transferred")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SEEDS", 3)
    monkeypatch.setattr(trials, "_STEPS", 40)
    monkeypatch.setattr(trials, "_RATE", 0.02)


def twins() -> np.ndarray:
    """(N, N) whether a pair matches without a label."""
    concept = np.arange(N) // TWINS
    return np.asarray((concept[:, None] == concept[None, :]) & ~np.eye(N, dtype=bool))


def planted(hidden: np.ndarray, probability: np.ndarray, **more: Any) -> TrialItems:
    """Return queries and candidates with a shared content, and in other dimensions a content of each pair alone."""
    random = np.random.default_rng(0)
    concept = random.normal(size=(N // TWINS, 8)).repeat(TWINS, 0)
    sides = [np.c_[concept + random.normal(size=concept.shape), detail] for detail in _details(random)]
    first, second = (np.asarray(side, np.float32) for side in sides)
    relations = more.get("relations") or Relations(N, N, np.stack([np.arange(N)] * 2, 1))
    return TrialItems(
        "vectors", first, second, relations, sparse.csr_matrix(hidden), sparse.csr_matrix(probability.astype(float))
    )


def _details(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    detail = random.normal(size=(N, 8))
    return tuple(detail + 0.5 * random.normal(size=detail.shape) for _ in range(2))  # type: ignore[return-value]


def run(items: TrialItems, spec: str = "ntxent:tau=0.1") -> Trial:
    return held_out_trial(items, build("objectives", spec), spec, 60)


@pytest.mark.parametrize("spec", ["ntxent:tau=0.1", "triplet-sh:margin=0.2"])
def test_where_false_negatives_are_planted_the_mask_helps(spec: str) -> None:
    result = run(planted(twins(), twins()), spec)
    assert result.headline.low > 0
    assert verdict(result, "calibrated").startswith("The heads found more with the mask in mAP")
    assert result.queries == N and result.hidden == twins().sum()


def test_a_mask_of_the_true_negatives_that_teach_is_said_to_harm_where_they_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The suspects do not match: without labels the verdict asks for labels, or says that the heads found less."""
    monkeypatch.setattr(trials, "_STEPS", 60)
    result = run(planted(twins(), np.zeros((N, N))))
    assert result.headline.high < 0
    assert verdict(result, "calibrated").startswith("The heads found less")
    assert "found more" not in verdict(result, "transferred")


def test_a_random_mask_is_not_said_to_help() -> None:
    mask = (np.random.default_rng(1).random((N, N)) < 0.02) & ~np.eye(N, dtype=bool)
    result = run(planted(mask, twins()))
    assert result.headline.low < 0
    assert not any("found more" in verdict(result, state) for state in STATES)


def test_equal_trials_are_equal_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SEEDS", 2)
    monkeypatch.setattr(trials, "_STEPS", 10)
    first, second = (run(planted(twins(), twins())) for _ in range(2))
    assert first == second


def test_measures_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    S, right = random.random((12, 30)), random.random((12, 30)) < 0.1
    right[3] = False
    left_out = (random.random((12, 30)) < 0.3) & ~right
    answers = Answers(np.argwhere(right), np.argwhere(left_out))
    [values] = np.moveaxis(trials._of_direction(torch.from_numpy(S), [answers]), 1, 0)
    for row in range(12):
        kept = ~left_out[row]
        if not right[row].any():
            assert np.isnan(values[row]).all()
            continue
        position = int((S[row, kept] > S[row, right[row]].max()).sum())
        expected = [
            100.0 * (position < 1),
            100.0 * (position < 5),
            100 * average_precision_score(right[row, kept], S[row, kept]),
        ]
        assert values[row] == pytest.approx(expected)


def test_halves_share_no_item_and_each_query_is_ranked_once() -> None:
    items = planted(twins(), twins())
    ranked = []
    for train, test, rows in trials._halves(items, 0):
        ids = [{tuple(row) for row in part.first.tolist()} for part in (train, test)]
        assert not ids[0] & ids[1]
        assert np.array_equal(test.first, items.first[rows])
        assert np.array_equal(test.hidden.toarray(), twins()[np.ix_(rows, rows)])
        assert len(test.relations.positives) == len(rows)
        ranked += rows.tolist()
    assert sorted(ranked) == list(range(N))


def test_the_interval_has_the_mean_where_queries_and_seeds_are_random() -> None:
    random, inside = np.random.default_rng(0), 0
    for _ in range(400):
        values = random.normal(size=(50, 1)) + 0.2 * random.normal(size=(1, 5)) + random.normal(size=(50, 5))
        _, low, high = crossed_interval(values)
        inside += low < 0 < high
    assert 0.94 <= inside / 400 <= 0.995
    assert crossed_interval(np.zeros((4, 5))) == (0, 0, 0)


def test_batches_have_as_many_pairs_as_are_taken_or_as_a_half_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SEEDS", 2)
    monkeypatch.setattr(trials, "_STEPS", 1)
    items, objective = planted(twins(), twins()), build("objectives", "ntxent")
    assert held_out_trial(items, objective, "ntxent", 4096).batch_size == N // 2
    monkeypatch.setattr(trials, "_BATCH", 32)
    assert [held_out_trial(items, objective, "ntxent", size).batch_size for size in (4096, 16)] == [32, 16]


def test_of_texts_vectors_are_the_largest_singular_ones_of_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    width = 20
    monkeypatch.setattr(worth, "WIDTH", width)
    inputs = read_inputs([], AuditOptions.of(data="passages:train=60,val=10,test=10"))
    space = inputs.material.part(TextSpace)
    assert space.first_words is not None
    words = sparse.vstack([space.first_words, space.words]).toarray()
    name, first, second = trial_vectors(inputs)
    assert name == "words of the texts"
    assert [len(first), len(second)] == [space.first_words.shape[0], space.words.shape[0]]
    values = np.linalg.svd(words, compute_uv=False)
    assert first.shape[1] == second.shape[1] == width
    assert (first**2).sum() + (second**2).sum() == pytest.approx((values[:width] ** 2).sum(), rel=0.01)
    vectors = np.concatenate([first, second])
    assert np.linalg.norm(words @ words.T - vectors @ vectors.T, 2) == pytest.approx(values[width] ** 2, rel=0.2)


def test_texts_of_a_single_word_have_no_vectors() -> None:
    with pytest.raises(InputError, match="must have 2 words or more between them; they have 1"):
        worth._of_words([sparse.csr_matrix(np.ones((3, 1)))] * 2)


def test_what_cannot_be_tried_is_said() -> None:
    with pytest.raises(InputError, match="it leaves out none"):
        run(planted(np.zeros((N, N), bool), twins()))
    few = Relations(N, N, np.stack([np.arange(30)] * 2, 1))
    with pytest.raises(InputError, match="must have 40 queries with a positive; got 30"):
        run(planted(twins(), twins(), relations=few))
    with pytest.raises(InputError, match="must be a function of similarities"):
        run(planted(twins(), twins()), "aoq")
    items = planted(twins(), twins())
    labels = Relations.of_labels(np.arange(N) // TWINS)
    with pytest.raises(InputError, match="must be of two sides"):
        run(TrialItems("set", items.first, items.first, labels, items.hidden, items.probability))


def said(is_calibrated: bool, **bounds: tuple[float, float]) -> str:
    """Return the verdict of differences in mAP."""
    differences = []
    for ranking in RANKINGS:
        low, high = bounds[ranking.replace(" ", "_")]
        differences += [Difference(_ranking(ranking), name, 50.0, (low + high) / 2, low, high) for name in MEASURES]
    return verdict(Trial("v", "o", 8, 100, 9, tuple(differences), 60), "calibrated" if is_calibrated else "transferred")


def _ranking(name: Ranking) -> Ranking:
    return name


def test_without_labels_probabilities_do_not_decide() -> None:
    bounds = {"by_probability": (1.0, 2.0), "left_out": (-1.0, 1.0), "as_labelled": (-3.0, -2.0)}
    assert "found more" in said(True, **bounds)
    assert "probabilities of other data cannot say: label pairs" in said(False, **bounds)
    assert "No difference could be seen" in said(False, **(bounds | {"as_labelled": (-1.0, 1.0)}))
    assert "found more" in said(False, **dict.fromkeys(bounds, (1.0, 2.0)))
    assert "found less" in said(False, **dict.fromkeys(bounds, (-2.0, -1.0)))
    assert "No difference could be seen" in said(True, **dict.fromkeys(bounds, (-2.0, 1.0)))
