"""Does the report name the loss that retrieves best and its lead, and say where runs cannot decide?"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from lossscope.report.findings import best_loss
from tests.report.findings.results_by_hand import against_best, report_data, row

THREE = [row("A", "rsum", 400.0), row("B", "rsum", 390.0), row("C", "rsum", 100.0)]


def texts(rows: list[dict[str, Any]], tests: list[dict[str, Any]] | None = None) -> list[str]:
    return [finding.text for finding in best_loss.build(report_data(rows, tests or []))]


def test_the_best_and_those_behind() -> None:
    (text,) = texts(THREE, [against_best("C", 300.0), against_best("B", 10.0, p=0.03)])
    assert text == (
        "A retrieves best on scenes: rsum 400.0 of 600. B and C are behind by 10.0 points (95 % interval 5.0 to "
        "15.0 over "
        "100 test images, p = 0.03) and 300.0."
    )


def test_a_loss_that_cannot_be_distinguished_is_said_so_with_its_interval() -> None:
    tests = [against_best("B", 0.8, p=0.96, ci_low=-25.0, ci_high=22.2), against_best("C", 300.0)]
    (text,) = texts(THREE, tests)
    assert text == (
        "A retrieves best on scenes: rsum 400.0 of 600. B is not distinguishable from it: behind by 0.8 points (95 % "
        "interval −22.2 to 25.0 over 100 test images, p = 0.96). C is behind by 300.0 points (95 % interval 295.0 "
        "to 305.0 "
        "over 100 test images, p = 0.0012)."
    )


def test_p_at_its_floor_is_an_upper_bound_and_never_a_measured_value() -> None:
    (text,) = texts(THREE[:2], [against_best("B", 10.0, p=0.0072, p_at_floor=True)])
    assert "p ≤ 0.0072" in text and "p = " not in text


def test_seeds_are_told_where_there_are_several() -> None:
    (text,) = texts(THREE[:2], [against_best("B", 10.0, n_seeds=3, sd_seeds=2.5)])
    assert "; over 3 seeds ± 2.5)" in text


def test_the_mean_over_seeds_decides() -> None:
    rows = [row("A", "rsum", 300.0), row("A", "rsum", 500.0, seed=1), row("B", "rsum", 390.0)]
    (text,) = texts(rows, [against_best("B", 10.0)])
    assert text.startswith("A retrieves best on scenes: rsum 400.0 of 600.")


def test_without_tests_the_second_is_named_and_nothing_is_claimed() -> None:
    (text,) = texts(THREE)
    assert text == "A retrieves best on scenes: rsum 400.0 of 600. B follows with 390.0; not tested."


def test_a_p_that_is_not_defined_distinguishes_nothing() -> None:
    (text,) = texts(THREE[:2], [against_best("B", 10.0, p=math.nan)])
    assert "B is not distinguishable from it" in text


def test_one_run_is_compared_with_nothing() -> None:
    rows = [row("A", "rsum", 57.24), row("A", "R@1", 4.0, "i2t"), row("A", "R@1", 1.2, "t2i")]
    assert texts(rows) == [
        "A on scenes reaches rsum 57.2 of 600 (R@1 4.0 % image to text, 1.2 % text to image); no other loss has "
        "numbers there."
    ]


def test_captions_that_are_true_of_other_images_are_told() -> None:
    rows = [row("A", "rsum", 57.24), row("A", "true_negatives", 24.1)]
    assert texts(rows)[0].endswith(" On these data, 24.1 % of the pairs of an image and another image's caption match.")
    assert "match" not in texts([row("A", "rsum", 57.24), row("A", "true_negatives", 0.015)])[0]


def test_a_loss_without_rsum_is_left_out() -> None:
    (text,) = texts([*THREE[:2], row("C", "rsum", math.nan)], [against_best("B", 10.0)])
    assert "C" not in text
    assert texts([row("A", "rsum", math.nan)]) == []


def test_the_model_is_named_where_there_are_several() -> None:
    rows = [*THREE[:2], row("A", "rsum", 410.0, encoder="VSRN"), row("B", "rsum", 401.0, encoder="VSRN")]
    assert [text.partition(":")[0] for text in texts(rows)] == [
        "A retrieves best on scenes with VSE++", "A retrieves best on scenes with VSRN"
    ]  # fmt: skip


def test_many_settings_are_counted() -> None:
    rows, tests = [], []
    for number in range(4):
        data = f"d{number}"
        first, second = ("A", "B") if number else ("B", "A")
        rows += [row(first, "rsum", 400.0, data=data), row(second, "rsum", 390.0, data=data)]
        chance = {"data": data, "baseline": first, "best": first, "p": 0.01 if number == 1 else 0.5}
        tests.append(against_best(second, 10.0, **chance))
    (text,) = texts(rows, tests)
    assert text.startswith("Of 4 settings (data and model), the best rsum is that of A in 3 and B in 1. In 1 of them ")
    assert "distinguishable from every other" in text


def test_equal_losses_are_no_lead_of_zero_points() -> None:
    (text,) = texts([THREE[0], row("B", "rsum", 400.0)], [against_best("B", 0.0, p=1.0, ci_low=0.0, ci_high=0.0)])
    assert text == "A and B retrieve best on scenes: rsum 400.0 of 600."


def test_of_several_losses_those_as_good_as_the_best_share_the_headline() -> None:
    rows = [*THREE, row("D", "rsum", 399.98)]
    tests = [against_best("D", -0.02, p=1.0), against_best("B", 10.0, p=0.5), against_best("C", 300.0)]
    (text,) = texts(rows, tests)
    assert text.startswith("A and D retrieve best on scenes: rsum 400.0 of 600. B is not distinguishable from them: ")
    assert "C is behind by 300.0 points" in text and "−0.0" not in text


def test_bounds_are_never_minus_zero() -> None:
    (text,) = texts(THREE[:2], [against_best("B", 10.0, ci_low=-20.0, ci_high=0.04)])
    assert "interval 0.0 to 20.0" in text


def test_a_lead_over_fewer_seeds_than_the_means_says_so() -> None:
    rows = [THREE[0], row("A", "rsum", 420.0, seed=1), row("B", "rsum", 404.0)]
    (text,) = texts(rows, [against_best("B", -4.0, p=0.8)])
    assert text == (
        "A retrieves best on scenes: rsum 410.0 of 600. B is not distinguishable from it: ahead by 4.0 points (95 % "
        "interval −1.0 to 9.0 over 100 test images, p = 0.8; over the one seed that both have)."
    )


def test_a_loss_that_was_never_trained_with_is_named_with_the_one_of_its_warmup() -> None:
    labels = {"data": "scenes", "encoder": "VSE++", "split": "val", "rsum": 1.0}
    rows = [{**labels, "run": loss, "objective_label": loss, "epoch": epoch, "warmup": warmup}
           for loss, warmup in (("A", "triplet"), ("B", None)) for epoch in (1, 2)]  # fmt: skip
    rows.append({**rows[-1], "epoch": 1, "warmup": "triplet"})
    data = report_data(THREE[:2], [against_best("B", 10.0, p=0.5)], epochs=pd.DataFrame(rows))
    (finding,) = best_loss.build(data)
    assert finding.text.startswith(
        "A (in its warm-up alone, trained with triplet) retrieves best on scenes: rsum 400.0 of 600. B is not "
    )
