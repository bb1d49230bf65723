"""Does the doctor keep its contract: ids, severities, the JSON document, reasons, thresholds?"""

from __future__ import annotations

import inspect
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

import lossscope
from lossscope.declarations import declarations
from lossscope.doctor.base import Check
from lossscope.doctor.examination.checks import all_checks, run_checks
from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.errors import InputError, SpecError
from lossscope.registry import build, names, spec_of
from tests.planted import no_learning
from tests.planted.base import SIZES, Size, aligned, healthy_dump, healthy_log, log, pairs

from .planted_modules import CONTRACT, NOTES, OF_TEXT_ROWS, OF_TRAINERS, planted

DOCUMENT = {"schema", "source", "objective", "state", "verdict", "unexplained", "findings", "checked", "not_checked"}
FINDING = {"id", "severity", "title", "why", "evidence", "advice", "reference", "explains", "cure"}
MAY_HAVE = {"examples", "source"}
EVIDENCE = {"statistic", "value", "low", "high", "threshold", "healthy"}
IDS = {*CONTRACT, *OF_TEXT_ROWS}
CHECKS = pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.id())
FIRST = [pytest.param(module.SICK[0], id=id) for id, module in planted().items() if module.SICK]


def document_of(*sources: Any, **options: Any) -> dict[str, Any]:
    """Return the document as a reader of its JSON gets it."""
    document = lossscope.doctor(*sources, cache=False, **options).document()
    read: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    assert read == document
    return read


def test_there_is_a_file_for_every_id() -> None:
    assert {name.replace("_", "-") for name in names("findings")} == IDS == {check.id() for check in all_checks()}


@CHECKS
def test_a_finding_has_a_question_a_source_and_the_severity_of_the_contract(check: Check) -> None:
    text = inspect.getdoc(type(check)) or ""
    question = (sys.modules[type(check).__module__].__doc__ or "").splitlines()[0]
    assert question.endswith("?") and "?" in text.split("\n\n")[0], "the first line is the question"
    assert "\nSource: " in text and len(check.reference()) > 10 and "\n" not in check.reference()
    assert check.severity == (CONTRACT | OF_TEXT_ROWS)[check.id()]


@CHECKS
def test_a_finding_explains_others_that_there_are(check: Check) -> None:
    assert set(check.explains) <= IDS - {check.id()} and len(set(check.explains)) == len(check.explains)


def test_every_threshold_says_what_it_is() -> None:
    for declaration in declarations("findings"):
        assert all(field.help for field in declaration.fields), declaration.name
        assert all(isinstance(field.default, int | float | tuple) for field in declaration.fields), declaration.name


@pytest.mark.parametrize("plant", FIRST)
def test_the_document_has_the_keys_of_the_contract(plant: Any, tmp_path: Path) -> None:
    case = plant(SIZES[0], tmp_path)
    document = document_of(*case.sources, **case.options)
    assert document.keys() == DOCUMENT and document["schema"] == "lossscope.doctor/1"
    reasons = {entry["id"]: entry["reason"] for entry in document["not_checked"]}
    assert {*document["checked"], *reasons} == IDS and not {*document["checked"]} & reasons.keys()
    assert len(document["checked"]) + len(document["not_checked"]) == len(IDS)
    assert reasons.keys() >= OF_TRAINERS and all(len(reason) > 10 for reason in reasons.values())
    for finding in document["findings"]:
        assert FINDING <= finding.keys() <= FINDING | MAY_HAVE and "source" not in finding
        assert finding["id"] in document["checked"] and {*finding["explains"]} <= {*document["checked"]}
        assert finding["severity"] in ("error", "warning", "note") and finding["reference"]
        assert finding["evidence"] and all(entry.keys() == EVIDENCE for entry in finding["evidence"])
        assert all(len(entry["healthy"]) == 2 for entry in finding["evidence"])
        assert finding["advice"] and all(entry.keys() == {"text", "command"} for entry in finding["advice"])
        assert not finding["title"].endswith(".") and "\n" not in finding["title"] + finding["why"]


def test_each_finding_of_several_sources_names_its_own(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    sick, well = no_learning.vectors(SIZES[0], tmp_path), healthy_dump(SIZES[0], tmp_path)
    first, second = aligned(SIZES[0])
    raw = pairs(tmp_path / "other", 3 * first, 3 * second)
    sources = [str(sick.sources[0]), str(well.sources[0]), raw]
    of_run = str(healthy_log(SIZES[0], tmp_path / "other").options["log"])
    document = document_of(*sources, log=of_run, objective="ntxent:tau=0.07", batch_size=64)
    assert document["source"] == [*sources, of_run] and document["objective"] == "ntxent:tau=0.07"
    found = {(finding["source"], finding["id"]) for finding in document["findings"]}
    assert (sources[0], "no-learning") in found and (sources[2], "not-normalised") in found
    assert {source for source, _ in found} <= {*document["source"]}
    assert {entry["source"] for entry in document["not_checked"]} == {*document["source"]}


def test_numbers_that_json_does_not_have_are_null(tmp_path: Path) -> None:
    module = planted()["non-finite"]
    for plant in module.SICK:
        case = plant(SIZES[0], tmp_path)
        document_of(*case.sources, **case.options)


def test_a_threshold_is_chosen_in_a_spec(tmp_path: Path) -> None:
    near = 0.965 * math.log(64) * (1 + 0.001 * SIZES[0].rng.normal(size=400))
    path, options = log(tmp_path, loss=near), Options(objective="ntxent:tau=0.07", batch_size=64)
    check = build("findings", "no-learning:share=0.96")
    assert check.id() == "no-learning" and spec_of(check).startswith("no_learning:share=0.96,")
    found = run_checks(open_patient(None, options, path), [check])
    assert [finding.id for finding in found.findings] == ["no-learning"] and found.checked == ("no-learning",)
    default = run_checks(open_patient(None, options, path), [build("findings", "no-learning")])
    assert not default.findings and default.checked == ("no-learning",)
    with pytest.raises(SpecError, match="shar"):
        build("findings", "no-learning:shar=0.1")


def test_the_package_is_the_function_and_says_what_it_found(tmp_path: Path) -> None:
    case = no_learning.vectors(SIZES[0], tmp_path)
    found = lossscope.doctor(*case.sources, cache=False, **case.options)
    assert repr(found).startswith("error: no-learning: ") and found.reaches("error")
    assert found.ids == tuple(finding.id for finding in found.findings)
    well = healthy_dump(SIZES[0], tmp_path)
    assert not lossscope.doctor(*well.sources, cache=False, **well.options).reaches("warning")
    assert lossscope.doctor.__name__ == "lossscope.doctor"


def test_arrays_are_examined_as_files_are(tmp_path: Path) -> None:
    first, second = aligned(Size())
    owner = {"positives": [[row, row] for row in range(len(first))]}
    by_name = lossscope.doctor({"queries": 3 * first, "documents": second, **owner})
    assert by_name.ids[:1] == ("not-normalised",) == lossscope.doctor((3 * first, second)).ids[:1]


@pytest.mark.parametrize(
    ("sources", "options", "fragment"),
    [
        ((), {}, "must be given a source, or a log"),
        (("a.npz",), {"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        (("a.npz",), {"batch_size": True}, "batch_size must be"),
        (("a.npz",), {"batchsize": 3}, "options of doctor must be of objective, batch_size, .*; got 'batchsize'"),
        (("a.npz",), {}, "there is nothing at 'a.npz'"),
        ((3,), {}, "source must be a path, loaded embeddings, two arrays, or arrays by name; got int"),
    ],
)
def test_what_cannot_be_examined_is_an_input_error(
    sources: tuple[Any, ...], options: dict[str, Any], fragment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=fragment):
        lossscope.doctor(*sources, **options)


@pytest.mark.parametrize("plant", [plant for plant in FIRST if plant.id not in NOTES])
def test_an_alarm_has_a_number_that_healthy_trainings_do_not_have(plant: Any, tmp_path: Path) -> None:
    case = plant(SIZES[0], tmp_path)
    evidence = lossscope.doctor(*case.sources, cache=False, **case.options).findings[0].evidence
    assert any(_is_beyond(entry.value, *entry.healthy) for entry in evidence), evidence


def _is_beyond(value: float, low: float | None, high: float | None) -> bool:
    """Return whether a number is NaN, or outside a range."""
    return not math.isfinite(value) or (low is not None and value <= low) or (high is not None and value >= high)
