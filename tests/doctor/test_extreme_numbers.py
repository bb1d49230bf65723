"""Numbers at the ends of float64 and float32: are they read right, or is it said that they are not?

No command ends in a traceback or writes a warning of numpy: the suite makes warnings errors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lossscope
from lossscope.core.facts import TooLittle
from lossscope.doctor.base import within_float64
from tests.command_line import lossscope as command
from tests.command_line import message, rows_of
from tests.each import each

Floats = npt.NDArray[Any]
_N, _D = 48, 8
_MOST, _LEAST = np.finfo(np.float64).max, 5e-324


def sides() -> tuple[Floats, Floats]:
    """Return aligned unit rows of both sides."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(_N, _D))
    second = first + 0.3 * rng.normal(size=(_N, _D))
    return tuple(x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second))  # type: ignore[return-value]


def scaled(first: Any, second: Any) -> tuple[Floats, Floats]:
    x, y = sides()
    return x * first, y * second


def with_rows(**changes: float) -> tuple[Floats, Floats]:
    """Return sides whose rows `row_3=1e300` are multiplied by these numbers."""
    x, y = sides()
    for name, factor in changes.items():
        x[int(name.removeprefix("row_"))] *= factor
    return x, y


_EXPONENTS = np.random.default_rng(1).uniform(-300, 300, (_N, 1))
SAME_RANKING: dict[str, tuple[Floats, Floats]] = {  # cosines are those of `sides`
    **{f"{factor:g}": scaled(factor, factor) for factor in (1e38, 1e39, 1e154, 1e160, 1e300, 1e-45, 1e-160, 1e-310)},
    "one side long, the other short": scaled(1e300, 1e-310),
    "of every magnitude": scaled(10.0**_EXPONENTS, 10.0 ** _EXPONENTS[::-1]),
    "a long row": with_rows(row_3=1e300),
    "a short row": with_rows(row_3=1e-310),
}
OTHERS: dict[str, tuple[Floats, Floats]] = {
    "signs of the largest number": tuple(np.sign(x) * _MOST for x in sides()),  # type: ignore[dict-item]
    "signs of the smallest number": tuple(np.sign(x) * _LEAST for x in sides()),  # type: ignore[dict-item]
    "columns of every magnitude": scaled(*2 * [10.0 ** np.linspace(-300, 300, _D)]),
    "signs of float32's largest": tuple(
        (np.sign(x) * np.finfo(np.float32).max).astype(np.float32) for x in sides()
    ),  # type: ignore[dict-item]
    "subnormals of float32": tuple((x * 1e-40).astype(np.float32) for x in sides()),  # type: ignore[dict-item]
    "signs of float16's largest": tuple((np.sign(x) * 65504).astype(np.float16) for x in sides()),  # type: ignore[dict-item]
    "zeros of both signs": with_rows(row_3=0.0, row_4=-0.0),
    "zeros alone": scaled(0.0, -0.0),
    "NaN alone": scaled(np.nan, 1.0),
}  # fmt: skip
MATRICES = {f"S times {factor:g}": sides()[0] @ sides()[1].T * factor for factor in (1e13, 1e39, 1e160, 1e300, 1e-310)}
OBJECTIVES = ({}, {"objective": "ntxent"}, {"objective": "triplet_sh"})


def write(folder: Path, arrays: tuple[Floats, Floats] | Floats) -> Path:
    path = folder / "dump.npz"
    named = (
        {"similarity": arrays}
        if isinstance(arrays, np.ndarray)
        else dict(zip(("images", "captions"), arrays, strict=True))
    )
    np.savez(path, allow_pickle=False, **named)
    return path


@each("name", [*SAME_RANKING, *OTHERS, *MATRICES])
def test_the_doctor_is_right_or_says_what_it_did_not_examine(name: str, tmp_path: Path) -> None:
    """Rows of 1e160 and more ended in an OverflowError, behind warnings of numpy."""
    path = write(tmp_path, {**SAME_RANKING, **OTHERS, **MATRICES}[name])
    for options in OBJECTIVES:
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        result = command("doctor", path, "--no-cache", "--format", "json", *words)
        found = json.loads(result.stdout, parse_constant=pytest.fail)
        assert {missed["id"] for missed in found["not_checked"]}.isdisjoint(found["checked"])
        assert all(missed["reason"] for missed in found["not_checked"])
        assert "arning" not in result.stderr and "nan" not in result.stderr


@each("name", list(SAME_RANKING))
def test_recall_and_findings_are_those_of_unit_rows(name: str) -> None:
    """The doctor called rows of 1e-310 zeros, and missed products that float32 does not hold."""
    for options in OBJECTIVES:
        usual, found = (lossscope.doctor(arrays, cache=False, **options) for arrays in (sides(), SAME_RANKING[name]))
        assert set(found.ids) - {"not-normalised"} == set(usual.ids)
        state, usual_state = (diagnosis.examinations[0].state for diagnosis in (found, usual))
        assert {key: quantity.text for key, quantity in state.items()} == {
            key: quantity.text for key, quantity in usual_state.items()
        }


@each("factor", [1e39, 1e160, 1e300, 1e-160, 1e-310])
def test_ranking_by_products_of_one_length_is_ranking_by_cosines(factor: float) -> None:
    (finding,) = lossscope.doctor(scaled(factor, factor), cache=False).findings
    assert finding.id == "not-normalised" and finding.cure is not None
    assert finding.cure.before == finding.cure.after > 0.9
    assert finding.evidence[1].value == pytest.approx(factor, rel=1e-9)


def test_lengths_beyond_float64_are_not_examined() -> None:
    """A row of the largest numbers is longer than any number of float64: its length was given as inf."""
    examination = lossscope.doctor(OTHERS["signs of the largest number"], cache=False).examinations[0]
    for id in ("not-normalised", "normalised-over-wrong-axis"):
        assert examination.reasons[id] == "row 0 of the images is longer than 1.8e+308, the largest number of float64"


@each("name, reason", [
    ("S times 1e+300", "its similarities reach 9.92e+299, and lossscope computes no loss beyond 1e+12"),
    ("S times 1e-310", "its largest similarity is 9.92e-311, too small for float32"),
])  # fmt: skip
def test_similarities_that_float32_does_not_hold_are_not_ranked(name: str, reason: str, tmp_path: Path) -> None:
    """They became inf or 0 in float32: the doctor found that a perfect matrix had learnt nothing."""
    examination = lossscope.doctor(str(write(tmp_path, MATRICES[name])), cache=False).examinations[0]
    assert "no-learning" not in examination.checked
    assert examination.reasons["hubness"].startswith(reason)
    assert not examination.state


def test_a_check_whose_numbers_overflow_is_not_examined() -> None:
    for overflow in (lambda: np.square(np.array([1e200])), lambda: round(float("inf"))):
        with pytest.raises(TooLittle, match="its numbers leave the range of float64: "), within_float64():
            overflow()


@each("name", [*SAME_RANKING, *OTHERS, *MATRICES])
def test_other_commands_read_extreme_numbers_or_refuse_them(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, {**SAME_RANKING, **OTHERS, **MATRICES}[name])
    for words in (
        ("eval",), ("cocos", "--objective", "ntxent"), ("probe", "--objective", "triplet_sh"),
        ("eval", "--score", "dot"), ("cocos", "--objective", "ntxent", "--score", "dot"),
        ("audit", "--out", tmp_path / "audit"),
    ):  # fmt: skip
        verb, *options = words
        result = command(verb, path, "--no-cache", *options)
        assert result.exit_code == 0 or result.stderr.splitlines()[-1].strip(), (words, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), words
        assert not {"nan", "inf", "RuntimeWarning:"} & set(result.output.split()), (words, result.output)


@each("name", list(SAME_RANKING))
def test_recall_of_eval_is_that_of_unit_rows(name: str, tmp_path: Path) -> None:
    usual = rows_of(command("eval", write(tmp_path, sides()), "--no-cache", "--format", "json"))
    again = rows_of(command("eval", write(tmp_path, SAME_RANKING[name]), "--no-cache", "--format", "json"))
    assert [{**row, "fingerprint": ""} for row in again] == [{**row, "fingerprint": ""} for row in usual]


@each("name", [name for name in SAME_RANKING if not name.startswith("one side")])
def test_products_that_float32_does_not_hold_are_refused(name: str, tmp_path: Path) -> None:
    """Scores were `from nan to nan`, and queries whose products were 0 had ties for ranks."""
    result = command("eval", write(tmp_path, SAME_RANKING[name]), "--no-cache", "--score", "dot")
    assert result.exit_code == 1
    assert "must have lengths with products from 1e-30 to 1e+30, which float32 holds; the " in message(result)


def test_products_of_a_long_and_a_short_side_are_ranked(tmp_path: Path) -> None:
    path = write(tmp_path, SAME_RANKING["one side long, the other short"])
    result = command("eval", path, "--no-cache", "--score", "dot", "--format", "json")
    assert rows_of(result)[0]["mean"] > 90  # R@1
    assert "norms of captions are 1e-310 to 1e-310" in message(result)


@each("name", list(SAME_RANKING))
def test_two_encodings_that_differ_by_lengths_are_equal(name: str, tmp_path: Path) -> None:
    """Their cosines were 0 or NaN where squares over- or underflow."""
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    paths = write(tmp_path / "first", sides()), write(tmp_path / "second", SAME_RANKING[name])
    assert set(lossscope.doctor(*map(str, paths), cache=False, same_items=True).ids) <= {"not-normalised"}
