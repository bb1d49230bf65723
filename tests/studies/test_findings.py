"""Does an evaluation hold the doctor's findings, is a damaged file named, and is an old folder read without them?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lossscope.doctor.examination.document import SCHEMA
from lossscope.doctor.types import SEVERITIES
from lossscope.errors import InputError
from lossscope.io import evaluation_folder
from lossscope.io.evaluation_folder import findings_file, read_findings, write_evaluation
from lossscope.io.manifests import write_manifest
from lossscope.registry import names
from lossscope.studies.report import read_runs

FINDING = {
    "id": "no-learning", "severity": "error", "title": "nothing", "why": "It is so.", "evidence": [],
    "advice": [{"text": "Look.", "command": "lossscope train"}], "reference": "", "explains": ["hubness", "cone"],
}  # fmt: skip


def document(*found: object, **changes: object) -> dict[str, Any]:
    whole = {"schema": "lossscope.doctor/1", "source": "a", "findings": [*found], "checked": [], "not_checked": []}
    return {**whole, **changes}


@pytest.fixture
def study(tiny_study: Path, tmp_path: Path) -> Path:
    """Return a copy that tests may write to."""
    return Path(shutil.copytree(tiny_study, tmp_path / "study"))


def runs(study: Path) -> list[Path]:
    return [folder / "run" for folder in sorted((study / "runs").iterdir())]


def test_every_run_of_a_study_was_examined(tiny_study: Path) -> None:
    for run in runs(tiny_study):
        found = read_findings(run)
        assert found is not None and found["schema"] == "lossscope.doctor/1"
        checked = {*found["checked"], *(check["id"] for check in found["not_checked"])}
        assert checked == {name.replace("_", "-") for name in names("findings")} and "cone" in found["checked"]


def test_findings_are_read_in_the_words_in_which_the_doctor_writes_them() -> None:
    assert evaluation_folder.FINDINGS_SCHEMA == SCHEMA and {*evaluation_folder._SEVERITIES} == {*SEVERITIES}


def test_findings_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_findings(tmp_path) is None
    write_evaluation(tmp_path, {}, {}, document(FINDING))
    assert read_findings(tmp_path) == document(FINDING)
    write_evaluation(tmp_path, {}, {})
    assert read_findings(tmp_path) is None, "those of an earlier evaluation are removed"


def test_findings_of_another_version_are_none(tmp_path: Path) -> None:
    write_manifest(findings_file(tmp_path), document(FINDING, schema="lossscope.doctor/9"))
    assert read_findings(tmp_path) is None


@pytest.mark.parametrize(
    ("damaged", "fragment"),
    [
        ({"findings": None}, "'findings' of"),
        ({"findings": ["no-learning"]}, "'findings' of"),
        ({"findings": [{**FINDING, "id": 3}]}, "'id'"),
        (
            {"findings": [{**FINDING, "severity": "fatal"}]},
            "severity of .* must be of error, warning, note; got 'fatal'",
        ),
        ({"findings": [{**FINDING, "explains": "all"}]}, "'explains'"),
        ({"findings": [{**FINDING, "advice": ["Look."]}]}, "'advice' of"),
        ({"schema": 1}, "'schema'"),
    ],
)
def test_a_file_of_another_form_is_an_input_error(damaged: dict[str, object], fragment: str, tmp_path: Path) -> None:
    write_manifest(findings_file(tmp_path), document(**damaged))
    with pytest.raises(InputError, match=fragment):
        read_findings(tmp_path)


def test_a_file_that_was_changed_or_cut_off_is_an_input_error(tmp_path: Path) -> None:
    file = findings_file(tmp_path)
    write_manifest(file, document(FINDING))
    text = file.read_text(encoding="utf-8")
    for changed in (text.replace("no-learning", "hubness"), text[:-30], "[]", ""):
        file.write_text(changed, encoding="utf-8")
        with pytest.raises(InputError, match=r"findings\.json"):
            read_findings(tmp_path)


def test_results_have_the_findings_of_every_run(study: Path) -> None:
    first, second, *others = runs(study)
    write_manifest(findings_file(first), document({**FINDING, "title": "\x1b[31mred"}))
    write_manifest(findings_file(second), document())
    for run in others:
        findings_file(run).unlink()
    results = read_runs([study])
    assert set(results.examined) == {first.parent.name, second.parent.name}
    (row,) = results.findings.to_dict("records")
    assert row["run"] == first.parent.name and row["explains"] == "hubness, cone"
    assert row["advice"] == "Look." and row["command"] == "lossscope train" and row["title"] == "\\x1b[31mred"


def test_a_study_of_before_there_was_a_doctor_is_read(study: Path) -> None:
    for run in runs(study):
        findings_file(run).unlink()
    results = read_runs([study])
    assert not results.examined and results.findings.empty
