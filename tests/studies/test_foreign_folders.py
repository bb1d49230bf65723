"""Is a foreign study or run only data, so that no Python file is imported, wherever the folder names it?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.studies.launchers.base import command
from lossscope.studies.study import Study
from lossscope.studies.worker import work
from tests.farm import warm_jobs
from tests.tiny import STUDY_OF_ONE_RUN

EVIL = """
from pathlib import Path
import torch

Path({trace!r}).write_text("run")

def loss(S):
    return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))

X = loss
"""
SPEC = "./evil.py:X"
Document = dict[str, Any]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that ./evil.py writes at its import."""
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text(EVIL.format(trace=str(tmp_path / "imported")), encoding="utf-8")
    return tmp_path / "imported"


def _recipe(name: str) -> Callable[[Document, Document], None]:
    def change(run: Document, examine: Document) -> None:
        run["recipe"][name] = SPEC

    return change


def _features(run: Document, examine: Document) -> None:
    run["features"] = SPEC


def _examine(name: str) -> Callable[[Document, Document], None]:
    def change(run: Document, examine: Document) -> None:
        examine[name] = SPEC if name == "what_if" else [SPEC]

    return change


PLACES = {
    **{name: _recipe(name) for name in ("data", "encoder", "objective")},
    "features": _features,
    **{name: _examine(name) for name in ("probes", "singles", "what_if")},
}


@pytest.mark.parametrize("option", PLACES)
def test_a_study_folder_that_names_a_file_is_not_run(option: str, trace: Path, tiny_study: Path) -> None:
    shutil.copytree(tiny_study, "study")
    document = json.loads(Path("study/study.json").read_text(encoding="utf-8"))
    key = document["runs"][0]["key"]
    PLACES[option](document["runs"][0], document["examine"])
    Path("study/study.json").write_text(json.dumps(document), encoding="utf-8")
    for file in Path("study/runs").glob("*/status.json"):
        file.unlink()
    result = CliRunner().invoke(app, ["study", "run", "study"])
    assert result.exit_code == 1
    assert "study.json names the Python file of './evil.py:X'" in result.stderr and "--trust-code" in result.stderr
    run_file = Path("study/runs", key, "run.json")
    of_run = json.loads(run_file.read_text(encoding="utf-8"))
    PLACES[option](of_run["run"], of_run["examine"])
    run_file.write_text(json.dumps(of_run), encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json names the Python file"):
        work(Path("study"), key)
    assert not trace.exists()


def test_an_encoder_that_only_a_checkpoint_of_the_study_names_is_not_imported(trace: Path, tiny_study: Path) -> None:
    shutil.copytree(tiny_study, "study")
    folder = Study.open("study").folder(Study.open("study").grid.runs[0])
    best = Run(folder / "run").best
    replace(Checkpoint.load(best), encoder=SPEC).save(best)
    (folder / "status.json").unlink()
    with pytest.raises(InputError, match=r"names the Python file of './evil\.py:X'"):
        work(Path("study"), folder.name)
    assert not trace.exists()


def test_a_toml_file_of_a_study_is_data(trace: Path, tiny_study: Path) -> None:
    text = (tiny_study.parent / "tiny.toml").read_text(encoding="utf-8")
    Path("foreign.toml").write_text(f'{text}\n[[objectives]]\nspec = "{SPEC}"\nname = "own"\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["study", "run", "foreign.toml"])
    assert result.exit_code == 1 and "foreign.toml names the Python file" in result.stderr
    result = CliRunner().invoke(app, ["study", "status", "foreign.toml"])
    assert result.exit_code == 1 and "study.json" in result.stderr  # it reads the folder, and builds nothing
    assert not trace.exists()


def test_a_recipe_and_a_run_are_data(trace: Path, tiny_run: Path) -> None:
    shutil.copytree(tiny_run, "run")
    config = Path("run/config.toml")
    config.write_text(config.read_text(encoding="utf-8").replace('"ntxent:tau=0.1"', f'"{SPEC}"'), encoding="utf-8")
    for words in (["--config", str(config), "--out", "new"], ["--resume", "run", "--epochs", "3"]):
        result = CliRunner().invoke(app, ["train", *words])
        assert result.exit_code == 1 and "config.toml names the Python file" in result.stderr
    assert not trace.exists() and not Path("new").exists()


def test_probes_of_a_run_are_data(trace: Path, tiny_run: Path) -> None:
    shutil.copytree(tiny_run, "run")
    Path("run/probes.toml").write_text(f'every = 1\nprobes = ["{SPEC}"]\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["train", "--resume", "run", "--epochs", "3"])
    assert result.exit_code == 1 and "probes.toml names the Python file" in result.stderr
    assert not trace.exists()


def test_a_file_that_was_typed_is_remembered_where_the_run_is_resumed(trace: Path, tiny_run: Path) -> None:
    shutil.copy(tiny_run / "config.toml", "config.toml")
    typed = ["train", "--config", "config.toml", "--objective", "./evil.py:loss", "--out", "run", "-q"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    resumed = CliRunner().invoke(app, ["train", "--resume", "run", "--epochs", "3", "-q"])
    assert resumed.exit_code == 0, resumed.stderr
    shutil.copytree("run", "copy")
    result = CliRunner().invoke(app, ["train", "--resume", "copy", "--epochs", "4"])
    assert result.exit_code == 1 and "--trust-code" in result.stderr


@pytest.mark.usefixtures("trace", "blank_pictures")
def test_workers_and_later_calls_remember_the_trust_given_to_a_study() -> None:
    Path("own.toml").write_text(STUDY_OF_ONE_RUN.replace('"ntxent"', f'"{SPEC}"'), encoding="utf-8")
    with warm_jobs():
        result = CliRunner().invoke(app, ["study", "run", "own.toml", "--trust-code", "-q"])
        assert result.exit_code == 0, result.stderr
        (status,) = Path("runs/tiny/runs").glob("*/status.json")
        status.unlink()
        again = CliRunner().invoke(app, ["study", "run", "own.toml", "-q"])
    assert again.exit_code == 0, again.stderr
    page = CliRunner().invoke(app, ["report", "runs/tiny", "--out", "page", "--resamples", "99", "-q"])
    assert page.exit_code == 0, page.stderr


def test_modules_in_the_current_folder_are_not_imported_by_workers(tmp_path: Path, trace: Path) -> None:
    evil = f"open({str(trace)!r}, 'a').write('run')\nraise SystemExit('run')\n"
    for name in ("torch", "numpy", "pandas", "lossscope", "typer", "rich"):
        Path(f"{name}.py").write_text(evil, encoding="utf-8")
    assert subprocess.run(command(["list", "objectives"]), capture_output=True, check=True).stdout
    as_module = [sys.executable, "-m", "lossscope_cli", "check", "ntxent"]  # by two processes
    shown = subprocess.run(as_module, capture_output=True, text=True, check=False)
    assert not trace.exists(), shown.stderr
    assert shown.returncode == 0, shown.stderr
