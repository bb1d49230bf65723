"""Is every reason for care a warning, and nothing else?"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from lossscope.report.findings import doubts
from tests.report.findings.results_by_hand import report_data, row


def texts(rows: list[dict[str, Any]], **more: Any) -> list[str]:
    findings = list(doubts.build(report_data(rows, **more)))
    assert all(finding.warning for finding in findings)
    return [finding.text for finding in findings]


TWO_SEEDS = [row("A", "rsum", 400.0), row("A", "rsum", 410.0, seed=1)]


def epochs(rsums: list[float], warmup: list[str | None], run: str = "A-scenes-VSE++-0") -> pd.DataFrame:
    """Return the validation epochs of a run, without epoch 0 and its training steps, which have no loss."""
    labels = {"run": run, "data": "scenes", "encoder": "VSE++", "objective_label": "A", "spec": "a", "split": "val"}
    numbers = {
        "epoch": range(len(rsums)),
        "rsum": rsums,
        "warmup": warmup,
        "pos_mean": 0.5,
        "neg_mean": 0.1,
        "loss": 1.0,
    }
    return pd.DataFrame(numbers).assign(**labels)


def test_seeds_enough_and_nothing_missing_is_no_doubt() -> None:
    assert texts(TWO_SEEDS) == []


def test_one_seed_is_a_doubt() -> None:
    assert texts([row("A", "rsum", 400.0)]) == [
        "One run: what another training would give is not known; tests are over test images."
    ]
    assert texts([row("A", "rsum", 400.0), row("B", "rsum", 400.0)])[0].startswith("One seed of each system: ")
    assert texts([*TWO_SEEDS, row("B", "rsum", 400.0)]) == [
        "One seed alone of B on scenes: its chance of training is not known."
    ]


def test_runs_without_numbers_are_counted_by_their_status() -> None:
    gaps = [{"run": str(number), "status": status} for number, status in enumerate(["failed", "failed", "waiting"])]
    assert texts(TWO_SEEDS, gaps=gaps) == ["3 of 5 runs have no numbers: 2 failed and 1 waiting."]


def test_an_undefined_rsum_is_named() -> None:
    rows = [row("A", "rsum", math.nan), row("A", "rsum", math.nan, seed=1)]
    assert texts(rows) == ["rsum is not defined for A on scenes."]


def test_the_best_epoch_in_the_warmup_is_a_doubt() -> None:
    rows = epochs([10.0, 300.0, 400.0, 350.0], [None, "triplet", "triplet", None])
    assert texts(TWO_SEEDS, epochs=rows) == [
        "A: validation rsum is highest within the warm-up, in which triplet trains. The loss itself did not improve "
        "the model."
    ]


def test_a_best_epoch_after_the_warmup_is_none_nor_is_a_training_without_one() -> None:
    assert texts(TWO_SEEDS, epochs=epochs([10.0, 300.0, 350.0], [None, "triplet", None])) == []
    assert texts(TWO_SEEDS, epochs=epochs([500.0, 300.0, 200.0], [None, None, None])) == []
    assert texts(TWO_SEEDS, epochs=epochs([500.0, 300.0], [None, None]).drop(columns="warmup")) == []
    assert texts(TWO_SEEDS, epochs=epochs([math.nan] * 3, [None, "triplet", None])) == []


def test_the_runs_with_their_best_epoch_in_the_warmup_are_counted() -> None:
    early = epochs([10.0, 400.0, 350.0], [None, "triplet", None])
    late = epochs([10.0, 300.0, 350.0], [None, "triplet", None], run="A-scenes-VSE++-1")
    (text,) = texts(TWO_SEEDS, epochs=pd.concat([early, late], ignore_index=True))
    assert text.startswith(
        "A: validation rsum of 1 of its 2 runs is highest within the warm-up, in which triplet trains."
    )


def test_a_loss_that_was_never_trained_with_is_a_doubt_of_its_own() -> None:
    assert texts(TWO_SEEDS, epochs=epochs([10.0, 300.0, 400.0], [None, "triplet", "triplet"])) == [
        "A on scenes: every epoch is of the warm-up, in which triplet trains. No number is one of A."
    ]


def test_counts_in_batches_of_several_sizes_are_a_doubt() -> None:
    rows = [*TWO_SEEDS, row("A", "C_neg", 1.0, "i2t"), row("A", "C_neg", 1.0, "t2i", batch_size=64.0)]
    assert texts(rows) == ["Losses were counted in batches of different sizes, so over different numbers of negatives."]
