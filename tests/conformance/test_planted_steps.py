"""Does the check meant for it, and no other, find each of twelve bugs of trainers, and do sound steps pass?"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lossscope.conformance.suite import check_trainer
from lossscope.objectives.checks.verdict import Verdict
from tests.conformance import planted_steps
from tests.lengths import thorough

FILE = Path(planted_steps.__file__)
NAMES = (*planted_steps.SOUND, *planted_steps.FOUND_BY)
pytestmark = pytest.mark.usefixtures("typed")


def verdicts(name: str, processes: int = 2, **options: object) -> list[Verdict]:
    return check_trainer(f"{FILE}:{name}", processes, **options)  # type: ignore[arg-type]


def failed(found: list[Verdict]) -> set[str]:
    return {verdict.name for verdict in found if verdict.outcome == "fail"}


def expected(name: str) -> set[str]:
    return {planted_steps.FOUND_BY[name]} if name in planted_steps.FOUND_BY else set()


def test_there_are_twelve_bugs_and_as_many_checks_that_find_them() -> None:
    assert len(planted_steps.FOUND_BY) == 12
    assert len(set(planted_steps.FOUND_BY.values())) == 11  # a gather loses gradients in two ways


@pytest.mark.parametrize("name", NAMES)
def test_each_bug_is_found_by_its_check_alone(name: str) -> None:
    found = verdicts(name)
    assert failed(found) == expected(name), [(v.name, v.evidence) for v in found if v.outcome == "fail"]


@pytest.mark.parametrize(("name", "processes"), [
    ("local_loss", 3), ("interleaved", 4), *thorough(("Clip", 4), ("sigmoid", 3), ("constants", 4), ("no_offset", 3)),
])  # fmt: skip
def test_any_number_of_processes_tells(name: str, processes: int) -> None:
    assert failed(verdicts(name, processes)) == expected(name)


@pytest.mark.parametrize("seed", [1, *thorough(2)])
@pytest.mark.parametrize("name", ["Clip", "triplet", "masked", "resampled", "mask_all", "overflow"])
def test_other_embeddings_tell_the_same(name: str, seed: int) -> None:
    assert failed(verdicts(name, seed=seed)) == expected(name)


BUGS_OF_ONE_PROCESS = (
    "resampled", "mask_all", "sum_of_means", "over_the_batch", "without_negatives", "overflow", "last_chunk",
)  # fmt: skip
NO_BUGS_OF_ONE_PROCESS = [name for name in NAMES if name not in BUGS_OF_ONE_PROCESS]


@pytest.mark.parametrize(
    "name", [*BUGS_OF_ONE_PROCESS, *NO_BUGS_OF_ONE_PROCESS[:1], *thorough(*NO_BUGS_OF_ONE_PROCESS[1:])]
)
def test_one_process_finds_what_one_process_shows(name: str) -> None:
    found = verdicts(name, 1)
    assert failed(found) == (expected(name) if name in BUGS_OF_ONE_PROCESS else set())
    of_several = ("processes", "labels-without-offset", "gather-without-gradient", "loss-scaled-by-processes")
    assert {v.outcome for v in found if v.name in of_several} == {"skipped"}


def test_a_trainer_that_adds_gradients_up_needs_a_loss_that_is_a_share() -> None:
    assert failed(verdicts("local_loss", mean=False)) == {"loss-scaled-by-processes"}
    assert failed(verdicts("share_of_the_mean", mean=False)) == set()
    assert failed(verdicts("share_of_the_mean")) == {"loss-scaled-by-processes"}


def test_a_step_that_ends_its_process_is_the_only_verdict() -> None:
    (said,) = verdicts("dies")
    assert (said.name, said.outcome) == ("step", "fail")
    assert said.evidence == "it must run on 8 pairs; rank 0 ended with exit code 7"


def test_another_loss_on_many_processes_is_a_note() -> None:
    found = verdicts("gathers_no_queries")
    assert failed(found) == set()
    (said,) = (v for v in found if v.name == "gather-without-gradient")
    assert said.outcome == "note"
    assert "a query pushes 7 candidates and 3 queries, on one process 7 candidates and 7 queries" in said.evidence


def test_a_factor_makes_up_for_a_gather_without_gradient() -> None:
    assert failed(verdicts("whole_times_processes")) == set()


@pytest.mark.parametrize(("name", "check"), [
    ("last_chunk_inside", "cached-gradient-differs"), ("parts_added_up", "accumulation-scale"),
    ("all_constant", "gather-without-gradient"),
    ("interleaved_alone", "mined-negative-as-positive"), ("positive_in_front", "positive-as-negative"),
])  # fmt: skip
def test_bugs_inside_a_step_are_seen_without_its_help(name: str, check: str) -> None:
    assert failed(verdicts(name)) == {check}


@pytest.mark.parametrize(("name", "check", "text"), [
    ("log_of_mean", "softmax-form", "−log of the mean of p"),
    ("exp_of_nll", "softmax-form", "exp(−mean of p)"),
    ("maximum_of_others", "softmax-form", "taken from the wrong axis"),
    ("over_all_pairs", "softmax-form", "equal ones cost log 64, where ntxent:tau=0.05 has log 8"),
    ("each_with_itself", "positives", "queries are compared with queries and with no candidate"),
])  # fmt: skip
def test_a_loss_that_is_nearly_the_right_one_is_named_without_an_objective(name: str, check: str, text: str) -> None:
    said = next(v for v in verdicts(name, 1) if v.outcome == "fail")
    assert said.name == check
    assert text in said.evidence


def test_the_form_of_sound_steps_is_said() -> None:
    forms = {name: v for name in ("maximum_of_the_row", "Clip") for v in verdicts(name, 1) if v.name == "softmax-form"}
    assert {v.outcome for v in forms.values()} == {"pass"}
    assert forms["maximum_of_the_row"].evidence == "it is ntxent:tau=0.05 of queries"
    assert forms["Clip"].evidence == f"it is ntxent:tau={math.exp(-3):.4g} of queries and of candidates"


@pytest.mark.parametrize(("name", "text"), [
    ("maximum_of_the_row", "equal similarities cost 2.079, as of ntxent"),
    ("Clip", "equal similarities cost 2.079, as of ntxent"),
    ("two_views", "equal similarities cost 2.708, log 15 (two views of each item)"),
    ("positive_in_front", "equal similarities cost 2.197 (log 9) a query, where ntxent has 2.079"),
    ("with_a_constant", "equal similarities cost 3.079 a query, where ntxent has 2.079"),
])  # fmt: skip
def test_what_guessing_costs_is_said_and_which_layout_of_candidates_costs_as_much(name: str, text: str) -> None:
    (said,) = (v for v in verdicts(name, 1) if v.name == "scale")
    assert said.outcome == "pass"
    assert text in said.evidence


def test_a_step_is_compared_with_its_plain_form() -> None:
    assert failed(verdicts("parts_added_up", plain=f"{FILE}:own_process")) >= {"cached-gradient-differs"}
    (said,) = (v for v in verdicts("cached", plain=f"{FILE}:local_loss") if v.name == "cached-gradient-differs")
    assert said.outcome == "pass" and said.numbers["off"] < 1e-9


@pytest.mark.parametrize("name", [
    "float32_inside", "bfloat16_logits", "smoothed", "flat_negatives", "one_negative", "wants_unit_vectors",
])  # fmt: skip
def test_unusual_steps_that_are_sound_fail_nothing(name: str) -> None:
    assert failed(verdicts(name)) == set()
