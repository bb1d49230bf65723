"""Does the text state the negatives that carry the gradient, their share of the push, and idle queries, as counted?"""

from __future__ import annotations

import math
from typing import Any

from lossscope.report.findings import gradient_share
from tests.report.findings.results_by_hand import report_data, row


def counts(loss: str, count: float, above: float, below: float, idle: float, **more: Any) -> list[dict[str, Any]]:
    values = {"C_neg": count, "W_neg": above, "W_low": below, "C_0": idle}
    return [row(loss, name, mean, side, **more) for name, mean in values.items() for side in ("i2t", "t2i")]


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [finding.text for finding in gradient_share.build(report_data([row("A", "rsum", 400.0), *rows]))]


def test_one_loss_in_full() -> None:
    assert texts(counts("A", 11.53, 0.89, 0.11, 0.0)) == [
        "A: on average 11.5 of 127 negatives of a query have a weight above 0.01 and carry 89 % of the push; none "
        "of the "
        "queries is idle."
    ]


def test_both_directions_and_all_seeds_are_averaged() -> None:
    rows = [
        row("A", "C_neg", 1.0, "i2t"), row("A", "C_neg", 2.0, "t2i"),
        row("A", "C_neg", 3.0, "i2t", seed=1), row("A", "C_neg", 4.0, "t2i", seed=1),
        row("A", "C_0", 0.0, "i2t"), row("A", "C_0", 38.4, "t2i"),
    ]  # fmt: skip
    assert texts(rows) == [
        "A: on average 2.5 of 127 negatives of a query have a weight above 0.01; 15 % of the queries are idle."
    ]


def test_losses_stand_one_after_another_from_the_fewest() -> None:
    rows = [*counts("A", 8.8, 0.927, 0.073, 0.05), *counts("B", 0.98, 1.0, 0.0, 6.4)]
    assert texts(rows) == [
        "Negatives of a query that carry the gradient, on average of 127, by a weight above 0.01: B 0.98 (all of "
        "the push, "
        "5 % of queries idle) and A 8.8 (92.7 % of the push, less than 0.1 % of queries idle)."
    ]


def test_a_short_batch_has_fewer_negatives() -> None:
    (text,) = texts(counts("A", 11.53, 0.89, 0.11, 0.0, short_batch=8))
    assert "11.5 of at most 127 negatives" in text


def test_batches_of_images_do_not_tell_how_many_negatives_a_query_has() -> None:
    (text,) = texts(counts("A", 2.0, 0.5, 0.5, 8.0, sampling="images", batch_size=16.0))
    assert "on average 2 negatives of a query" in text
    assert "50 % of the image queries are idle" in text  # there are as many as images


def test_losses_in_batches_of_other_sizes_are_not_of_one_number() -> None:
    (text,) = texts([*counts("A", 8.0, 1.0, 0.0, 0.0), *counts("B", 9.0, 1.0, 0.0, 0.0, batch_size=64.0)])
    assert "on average, by a weight" in text and "127" not in text


def test_without_weights_or_idle_queries_neither_is_claimed() -> None:
    assert texts([row("A", "C_q_all", 5.0, "i2t")]) == [
        "A: on average 5 of 127 negatives of a query have a weight above 0.01."
    ]


def test_without_counts_nothing_is_said() -> None:
    assert texts([]) == []
    assert texts(counts("A", math.nan, math.nan, math.nan, math.nan)) == []


def test_counts_of_other_conventions_are_not_mixed_in() -> None:
    (text,) = texts([*counts("A", 11.53, 0.89, 0.11, 0.0), *counts("A", 99.0, 0.1, 0.9, 9.0, convention="released")])
    assert "11.5 of 127" in text and "89 %" in text and "none of the queries is idle" in text


def test_the_setting_with_most_losses_is_told() -> None:
    alone = counts("A", 1.0, 1.0, 0.0, 0.0, data="d")
    first, second = counts("A", 2.0, 1.0, 0.0, 0.0), counts("B", 3.0, 1.0, 0.0, 0.0)
    (text,) = texts([*alone, *first, *second])
    assert " on scenes," in text and "A 2 (" in text and "B 3 (" in text


def test_smoothap_counts_triplets_per_positive_and_says_so() -> None:
    options = {"sampling": "images", "batch_size": 32.0, "objective": "smoothap:tau=0.01"}
    of_images = counts("S", 0.68, 0.9, 0.1, 0.48, **options)
    (text,) = texts([*of_images, *counts("A", 7.5, 0.84, 0.16, 0.0)])
    assert text.startswith("Samples of a query that carry the gradient, on average, by a weight above 0.01: S 0.68 ")
    assert "0.68 triplets per positive (90 % of the push, 1.5 % of image queries idle) and A 7.5 (84 %" in text
    (alone,) = texts(of_images)
    assert "S: on average 0.68 triplets per positive have a weight above 0.01" in alone
