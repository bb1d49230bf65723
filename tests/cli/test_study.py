"""From the command line: run a grid, see where it is, print its tables; exit codes and messages."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from lossscope.io.evaluation_folder import findings_file
from lossscope.io.manifests import write_manifest
from lossscope.studies.report import read_runs
from lossscope.studies.study import Study
from tests.command_line import lossscope, message
from tests.farm import warm_jobs


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_study: Path) -> None:
    """Copy tiny.toml, and its finished study to runs/tiny, where commands find it."""
    shutil.copytree(tiny_study, tmp_path / "runs" / "tiny")
    shutil.copy(tiny_study.parent / "tiny.toml", tmp_path)


def fail(index: int = -1) -> str:
    """Make a run fail; return its key."""
    folder = sorted(Path("runs/tiny/runs").iterdir())[index]
    (folder / "status.json").write_text('{"status": "failed", "reason": "no memory left"}', encoding="utf-8")
    return folder.name


def test_a_study_that_is_done_is_run_in_no_time() -> None:
    result = lossscope("study run tiny.toml --device cpu")
    assert (result.exit_code, result.stdout.strip(), result.stderr) == (0, "runs/tiny", "")


def test_a_failed_run_is_named_and_the_exit_code_is_1() -> None:
    key = fail()
    result = lossscope("study run tiny.toml --device cpu")
    assert result.exit_code == 1 and result.stdout.strip() == "runs/tiny"
    assert f"Failed: {key}: no memory left" in result.stderr
    assert "1 of 4 runs failed; --retry-failed runs them again." in result.stderr


def test_failed_runs_are_run_again_with_retry_failed() -> None:
    key = fail()
    with warm_jobs():
        result = lossscope("study run tiny.toml --device cpu --retry-failed")
    assert result.exit_code == 0, result.stderr
    assert f"4/4 {key}: rsum" in result.stderr
    assert {run.status for run in Study.open(Path("runs/tiny")).statuses()} == {"done"}


def test_the_cost_is_printed_and_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.studies.cost._start_seconds", lambda: 3.0)
    text = Path("tiny.toml").read_text(encoding="utf-8").replace("[0, 1]", "[0, 1, 2]")
    Path("tiny.toml").write_text(text, encoding="utf-8")
    result = lossscope("study run tiny.toml --dry-run --device cpu")
    assert result.exit_code == 0, result.stderr
    assert "2 runs left of 6" in result.stdout and "runs that are done" in result.stdout
    assert [run.status for run in Study.open(Path("runs/tiny")).statuses()].count("waiting") == 2


def test_status_is_json_csv_or_a_table() -> None:
    key = fail()
    report = json.loads(lossscope("study status tiny.toml --format json").stdout)
    assert report["schema"] == "lossscope.status/2" and len(report["runs"]) == 4
    assert set(report["runs"][0]) == {
        "run", "data", "encoder", "objective_label", "seed", "status", "rsum", "seconds", "reason", "findings",
    }  # fmt: skip
    rsum = read_runs([Path("runs/tiny")]).rows.query("statistic == 'rsum'").set_index("run")["mean"]
    rsums = {run["run"]: run["rsum"] for run in report["runs"] if run["status"] == "done"}
    assert rsums == pytest.approx(rsum.to_dict())
    (failed,) = [run for run in report["runs"] if run["status"] == "failed"]
    assert (failed["run"], failed["reason"], failed["rsum"]) == (key, "no memory left", None)
    frame = pd.read_csv(io.StringIO(lossscope("study status runs/tiny --format csv").stdout))
    assert frame["run"].tolist() == [run["run"] for run in report["runs"]]
    text = lossscope("study status runs/tiny").stdout
    assert "4 runs: 3 done, 1 failed." in text and "no memory left" in text


def findings(*alarms: tuple[str, str]) -> dict[str, object]:
    """Return the doctor's document with findings of a severity and an id."""
    empty = {"evidence": [], "advice": [], "reference": "", "explains": []}
    found = [{"severity": severity, "id": id, "title": id, "why": id, **empty} for severity, id in alarms]
    return {"schema": "lossscope.doctor/1", "source": "a", "findings": found, "checked": [], "not_checked": []}


def test_status_says_which_runs_are_ill_and_which_were_not_examined() -> None:
    first, second, third, fourth = (Path("runs/tiny/runs") / key.name / "run" for key in sorted(_run_folders()))
    write_manifest(findings_file(first), findings(("error", "no-learning"), ("warning", "hubness"), ("note", "cone")))
    write_manifest(findings_file(second), findings(("note", "cone")))
    write_manifest(findings_file(third), findings(("error", "no-learning")))
    findings_file(fourth).unlink(missing_ok=True)
    report = json.loads(lossscope("study status tiny.toml --format json").stdout)
    of_run = {run["run"]: run["findings"] for run in report["runs"]}
    keys = [file.parent.name for file in (first, second, third, fourth)]
    assert [of_run[key] for key in keys] == [["error:no-learning", "warning:hubness"], [], ["error:no-learning"], None]
    frame = pd.read_csv(io.StringIO(lossscope("study status tiny.toml --format csv").stdout)).set_index("run")
    assert frame.loc[keys[0], "findings"] == "error:no-learning warning:hubness"
    assert frame.loc[keys[1:], "findings"].tolist() == ["no problem found", "error:no-learning", "not examined"]
    text = " ".join(lossscope("study status tiny.toml").stdout.split())
    assert f"Doctor: error no-learning in 2 of 3 examined runs: {keys[0]}, {keys[2]}." in text
    assert f"Doctor: warning hubness in 1 of 3 examined runs: {keys[0]}." in text and "cone" not in text


def test_status_of_well_runs_says_so_and_of_runs_not_examined_nothing() -> None:
    for key in _run_folders():
        write_manifest(findings_file(key / "run"), findings(("note", "cone")))
    assert "Doctor: no problem found in 4 examined runs" in lossscope("study status tiny.toml").stdout
    for key in _run_folders():
        findings_file(key / "run").unlink()
    result = lossscope("study status tiny.toml")
    assert result.exit_code == 0 and "Doctor" not in result.stdout


def test_a_damaged_list_of_findings_is_named_and_status_shows_the_rest() -> None:
    (key, *others) = _run_folders()
    file = findings_file(key / "run")
    file.write_text(file.read_text(encoding="utf-8").replace('"severity"', '"severe"', 1)[:-40], encoding="utf-8")
    result = lossscope("report runs/tiny --out page")
    assert result.exit_code == 1 and "findings.json" in message(result), result.output
    for format in ("table", "json", "csv"):
        result = lossscope(f"study status tiny.toml --format {format}")
        assert result.exit_code == 0 and f"{key.name}: " in result.stderr and "findings.json" in result.stderr
        assert all(folder.name in result.stdout for folder in (key, *others))
    frame = pd.read_csv(io.StringIO(result.stdout)).set_index("run")
    assert (frame["findings"] == "unreadable").to_dict() == {folder.name: folder == key for folder in (key, *others)}


def _run_folders() -> list[Path]:
    return sorted(Path("runs/tiny/runs").iterdir())


def test_tables_are_those_of_the_rows() -> None:
    text = lossscope("study table tiny.toml").stdout
    assert "Retrieval in both directions" in text and "NT-Xent" in text
    assert r"\toprule" in lossscope("study table runs/tiny --format latex").stdout
    rows = pd.read_csv(io.StringIO(lossscope("study table runs/tiny --format csv").stdout))
    kept = read_runs([Path("runs/tiny")]).rows
    assert rows["mean"].tolist() == pytest.approx(kept["mean"].tolist(), nan_ok=True)
    report = json.loads(lossscope("study table runs/tiny --format json").stdout)
    assert report["schema"] == "lossscope.summary/1" and len(report["rows"]) == len(kept)


def test_a_study_of_which_nothing_is_done_has_no_table() -> None:
    for index in range(4):
        fail(index)
    result = lossscope("study table tiny.toml")
    assert result.exit_code == 1 and result.stdout == ""
    assert "at least one run must be finished; got" in message(result) and "no memory left" in message(result)


def test_help_of_the_group_names_what_is_for_people() -> None:
    text = lossscope("study --help").stdout
    assert all(name in text for name in ("run", "status", "table")) and "Folder of the study; launchers" not in text
