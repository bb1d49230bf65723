"""From the command line: run a grid, see where it is, print its tables; exit codes and messages."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.report.results import read_results
from lossscope.studies.study import Study


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_study: Path) -> None:
    """tiny.toml, and its finished study in runs/tiny, where it is looked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copytree(tiny_study, tmp_path / "runs" / "tiny")
    shutil.copy(tiny_study.parent / "tiny.toml", tmp_path)


def lossscope(words: str) -> Result:
    return CliRunner().invoke(app, words.split())


def fail(place: int = -1) -> str:
    """Make one cell a failed one; its key."""
    folder = sorted(Path("runs/tiny/cells").iterdir())[place]
    (folder / "state.json").write_text('{"status": "failed", "reason": "no memory left"}', encoding="utf-8")
    return folder.name


def message(result: Result) -> str:
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.slow
def test_a_study_that_is_done_is_run_in_no_time() -> None:
    result = lossscope("study run tiny.toml --device cpu")
    assert (result.exit_code, result.stdout.strip(), result.stderr) == (0, "runs/tiny", "")


def test_a_failed_cell_is_told_and_the_exit_code_is_1() -> None:
    key = fail()
    result = lossscope("study run tiny.toml --device cpu")
    assert result.exit_code == 1 and result.stdout.strip() == "runs/tiny"
    assert f"Failed: {key}: no memory left" in result.stderr
    assert "1 of 4 cells failed; --retry-failed runs them again." in result.stderr


@pytest.mark.slow
def test_failed_cells_are_run_again_when_asked() -> None:
    key = fail()
    result = lossscope("study run tiny.toml --device cpu --retry-failed")
    assert result.exit_code == 0, result.stderr
    assert f"4/4 {key}: rsum" in result.stderr
    assert {state.status for state in Study.opened("runs/tiny").states()} == {"done"}


@pytest.mark.slow
def test_the_cost_is_told_and_nothing_is_run() -> None:
    text = Path("tiny.toml").read_text(encoding="utf-8").replace("[0, 1]", "[0, 1, 2]")
    Path("tiny.toml").write_text(text, encoding="utf-8")
    result = lossscope("study run tiny.toml --dry-run --device cpu")
    assert result.exit_code == 0, result.stderr
    assert "2 cells left of 6" in result.stdout and "cells that are done" in result.stdout
    assert [state.status for state in Study.opened("runs/tiny").states()].count("waiting") == 2


def test_status_is_json_csv_or_a_table() -> None:
    key = fail()
    found = json.loads(lossscope("study status tiny.toml --format json").stdout)
    assert found["schema"] == "lossscope.status/2" and len(found["cells"]) == 4
    assert set(found["cells"][0]) == {
        "cell", "data", "encoder", "objective_label", "seed", "status", "rsum", "seconds", "reason",
    }  # fmt: skip
    rsum = read_results(["runs/tiny"]).rows.query("statistic == 'rsum'").set_index("run")["mean"]
    told = {one["cell"]: one["rsum"] for one in found["cells"] if one["status"] == "done"}
    assert told == pytest.approx(rsum.to_dict())
    (failed,) = [one for one in found["cells"] if one["status"] == "failed"]
    assert (failed["cell"], failed["reason"], failed["rsum"]) == (key, "no memory left", None)
    frame = pd.read_csv(io.StringIO(lossscope("study status runs/tiny --format csv").stdout))
    assert frame["cell"].tolist() == [one["cell"] for one in found["cells"]]
    text = lossscope("study status runs/tiny").stdout
    assert "4 cells: 3 done, 1 failed." in text and "no memory left" in text


@pytest.mark.slow
def test_tables_are_those_of_the_rows() -> None:
    text = lossscope("study table tiny.toml").stdout
    assert "Retrieval in both directions" in text and "NT-Xent" in text
    assert r"\toprule" in lossscope("study table runs/tiny --format latex").stdout
    rows = pd.read_csv(io.StringIO(lossscope("study table runs/tiny --format csv").stdout))
    kept = read_results(["runs/tiny"]).rows
    assert rows["mean"].tolist() == pytest.approx(kept["mean"].tolist(), nan_ok=True)
    found = json.loads(lossscope("study table runs/tiny --format json").stdout)
    assert found["schema"] == "lossscope.summary/1" and len(found["rows"]) == len(kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("study run", 2, "Missing argument"),
        ("study run gone.toml", 1, "gone.toml must be a readable TOML file of a study"),
        ("study run empty", 1, "empty must be the folder of a study; it has no study.json"),
        ("study run tiny.toml --out full", 1, "full must be new, empty, or a study; it is something else"),
        ("study run tiny.toml --launcher nonsense", 2, "launcher must be one of"),
        ("study run tiny.toml --launcher local:jobs=-1", 1, "jobs must be"),
        ("study run tiny.toml --data nonsense", 2, "--data must be NAME=SPEC; got"),
        ("study run tiny.toml --data other=scenes", 1, "--data must name one of scenes; got 'other'"),
        ("study run runs/tiny --out else", 2, "a folder states its data; give --data and --out with the TOML file"),
        ("study run tiny.toml --device tpu", 2, "--device must be auto, cpu, cuda"),
        ("study run changed.toml --out runs/tiny", 1, "must go on with the choices it began with; got another lr"),
        ("study run wrong.toml", 1, "keys of wrong.toml must be of"),
        ("study status gone.toml", 1, "must be a readable TOML file of a study"),
        ("study status tiny.toml --out gone", 1, "gone must be the folder of a study; it has no study.json"),
        ("study status tiny.toml --format latex", 2, "--format must be one of table, json, csv; got 'latex'"),
        ("study table tiny.toml --format nonsense", 2, "--format must be one of table, json, csv, markdown, latex"),
        ("study table empty", 1, "empty must be the folder of a study"),
        ("study nonsense", 2, "No such command"),
    ],
)
def test_what_can_not_be_run_is_told(words: str, code: int, told: str) -> None:
    Path("empty").mkdir()
    Path("full").mkdir()
    Path("full/notes.txt").write_text("mine", encoding="utf-8")
    text = Path("tiny.toml").read_text(encoding="utf-8")
    Path("changed.toml").write_text(text.replace("lr = 0.01", "lr = 0.02"), encoding="utf-8")
    Path("wrong.toml").write_text(f"nonsense = 1\n{text}", encoding="utf-8")
    result = lossscope(words)
    assert result.exit_code == code, result.output
    assert told in message(result)
    assert result.stdout == ""


def test_a_study_of_which_nothing_is_done_has_no_table() -> None:
    for place in range(4):
        fail(place)
    result = lossscope("study table tiny.toml")
    assert result.exit_code == 1 and result.stdout == ""
    assert "at least one run must be done; got" in message(result) and "no memory left" in message(result)


@pytest.mark.parametrize("words", ["study run", "study status", "study table"])
def test_help_shows_examples(words: str) -> None:
    result = lossscope(f"{words} --help")
    assert result.exit_code == 0 and "Examples" in result.stdout
    assert f"lossscope {words} studies/bleeker2022-small.toml" in result.stdout


def test_help_of_the_group_names_what_is_for_people() -> None:
    text = lossscope("study --help").stdout
    assert all(name in text for name in ("run", "status", "table")) and "Folder of the study; launchers" not in text
