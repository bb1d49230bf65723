"""Does the command line keep its promises, print results to stdout and messages to stderr, and refuse clearly?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lossscope_cli import app
from PIL import Image

from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY, Frame
from lossscope.registry import names
from tests.command_line import document, lossscope, tree
from tests.each import each
from tests.tiny import ENCODER

COMMANDS = ["check", "cocos", "demo", "diagram", "eval", "list", "mine", "train", "trajectory", "verify"]
DATA = "scenes:train=30,val=10,test=10,size=16"
TRAIN = ["train", "--data", DATA, "--encoder", ENCODER, "--objective", "ntxent", "--epochs", "1", "--batch-size", "32"]


@pytest.fixture
def ckpt(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    (tmp_path / "ckpt.pt").write_bytes(tiny_checkpoint.read_bytes())
    return tmp_path / "ckpt.pt"


def test_cocos_of_a_checkpoint_exactly_as_promised(ckpt: Path) -> None:
    result = lossscope(*"cocos ckpt.pt --eps 0.01".split())
    assert result.exit_code == 0, result.stderr
    assert "ntxent:tau=0.1" in result.stdout
    assert "C_neg" in result.stdout
    assert "eps 0.01" in result.stdout


def test_diagram_exactly_as_promised(tmp_path: Path) -> None:
    result = lossscope(*"diagram --triplet cir --tau 10".split())
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "diagram-cir.png\n"
    with Image.open(tmp_path / "diagram-cir.png") as picture:
        assert min(picture.size) > 200


def test_diagrams_of_other_weights_do_not_replace_each_other(tmp_path: Path) -> None:
    words = ["--triplet cir --tau 5", "--triplet nca", "--objective ntxent:tau=0.05", "--pair lin --triplet con"]
    names = {name for line in words for name in lossscope("diagram", "--points", "5", *line.split()).stdout.split()}
    assert {"diagram-cir-tau-5.png", "diagram-nca.png", "diagram-ntxent-tau-0.05.png"} <= names
    assert names == {path.name for path in tmp_path.glob("diagram*.png")}


def test_the_promised_lines_work_in_a_shell(ckpt: Path, tmp_path: Path) -> None:
    shell: dict[str, Any] = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120, "check": True}
    command = [sys.executable, "-m", "lossscope_cli"]
    document = subprocess.run([*command, "cocos", "ckpt.pt", "--eps", "0.01", "--format", "json"], **shell)
    assert json.loads(document.stdout)["schema"] == "lossscope.summary/1"
    assert lossscope("--version").stdout.strip()


def test_the_commands_are_those_of_the_contract() -> None:
    assert set(COMMANDS) <= set(tree(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("objectives", [["triplet"], ["ntxent:tau=0.05", "supcon", "triplet-sh", "goal"]])
def test_json_of_cocos_is_one_document_that_equals_the_frame(objectives: list[str], dump: Path, tmp_path: Path) -> None:
    options = [word for spec in objectives for word in ("--objective", spec)]
    words = ["cocos", dump, *options, "--batch-size", "8", "--out", tmp_path / "frame", "--format", "json"]
    report = document(lossscope(*words))
    assert set(report) == {"schema", "command", "rows"}
    assert all(set(row) == set(SUMMARY) for row in report["rows"])
    assert len({row["objective"] for row in report["rows"]}) == len(objectives)
    frame = Frame(tmp_path / "frame")
    batches = frame.read()
    for row in report["rows"]:
        part = batches[(batches["objective"] == row["objective"]) & (batches["direction"] == row["direction"])]
        values = part[row["statistic"]].dropna()
        assert row["n"] == len(part)
        assert row["n_defined"] == len(values)
        total = row["statistic"] in ("C_B", "C_0", "skipped")  # of full batches alone
        full = part["items"] == part["items"].max()
        weights = full.astype(float) if total else part.loc[values.index, "queries"]
        assert row["mean"] == (pytest.approx(np.average(values, weights=weights)) if len(values) else None)
    assert frame.manifest()["done"]
    assert document(lossscope(*words)) == report


def test_json_of_eval_is_one_document(ckpt: Path) -> None:
    report = document(lossscope("eval", ckpt, "--format", "json"))
    means = {(row["direction"], row["statistic"]): row["mean"] for row in report["rows"]}
    assert {"R@1", "R@5", "R@10", "medr", "meanr", "MRR", "mAP@5", "mAP@5_hits", "ties"} == {
        statistic for direction, statistic in means if direction == "i2t"
    }
    recalls = [means[side, f"R@{k}"] for side in ("i2t", "t2i") for k in (1, 5, 10)]
    assert means["both", "rsum"] == pytest.approx(sum(recalls))


@each(
    "format", ["table", "json", "csv", "markdown", "latex"],
    "command", [["cocos", "dump.npz", "--objective", "triplet"], ["eval", "dump.npz"]],
)  # fmt: skip
def test_every_format_is_written(command: list[str], format: str, dump: Path) -> None:
    result = lossscope(*command, "--format", format)
    assert result.exit_code == 0, result.stderr
    mark = {"table": "i2t", "json": '"schema"', "csv": "source,objective", "markdown": "| ", "latex": r"\toprule"}
    assert mark[format] in result.stdout
    assert "normalised" in result.stderr
    assert "normalised" not in result.stdout


def test_quiet_says_nothing_but_the_result(dump: Path) -> None:
    result = lossscope("cocos", dump, "--objective", "triplet", "--quiet")
    assert result.stderr == ""
    assert result.stdout


def test_eval_writes_to_a_file(dump: Path, tmp_path: Path) -> None:
    result = lossscope("eval", dump, "--format", "csv", "--out", tmp_path / "deep" / "eval.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert set(pd.read_csv(tmp_path / "deep" / "eval.csv")["probe"]) == {"recall"}


def test_folds_and_ensembles(dump: Path) -> None:
    folds = document(lossscope("eval", dump, "--folds", "3", "--format", "json"))
    assert {row["sampling"] for row in folds["rows"]} == {"3 folds"}
    single = document(lossscope("eval", dump, "--format", "json"))["rows"]
    both = document(lossscope("eval", dump, dump, "--ensemble", "--format", "json"))["rows"]
    assert [row["mean"] for row in both] == [row["mean"] for row in single]


def test_several_sources_get_a_frame_each(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "other.npz").write_bytes(dump.read_bytes())
    result = lossscope("cocos", dump, "other.npz", "--objective", "triplet", "--out", "frames")
    assert result.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "frames").iterdir()) == ["00-dump", "01-other"]


def test_an_objective_from_a_file_of_ones_own(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "my_loss.py").write_text(
        "from dataclasses import dataclass\nfrom lossscope.objectives.base import LossObjective, positive_of\n"
        "@dataclass(frozen=True)\nclass Mine(LossObjective):\n    scale: float = 1.0\n"
        "    def values(self, S, mask):\n"
        "        return self.scale * (S.masked_fill(~mask.negatives, 0).sum(1) - positive_of(S, mask)[:, 0])\n"
    )
    report = document(lossscope("cocos", dump, "--objective", "./my_loss.py:Mine:scale=2", "--format", "json"))
    assert {row["objective"] for row in report["rows"]} == {"./my_loss.py:Mine:scale=2"}
    words = ["train", "--data", DATA, "--encoder", ENCODER, "--epochs", "1", "--batch-size", "64", "--quiet"]
    trained = lossscope(*words, "--objective", "./my_loss.py:Mine")
    assert trained.stdout.split() == ["runs/scenes-Mine-seed0"], trained.stderr
    assert lossscope("cocos", "runs/scenes-Mine-seed0").exit_code == 0  # the user typed it at the start of the run
    shutil.copytree("runs/scenes-Mine-seed0", "copy")
    refused = lossscope("cocos", "copy")
    assert refused.exit_code == 1
    assert "lossscope imports it only with --trust-code" in refused.stderr
    assert lossscope("cocos", "copy", "--trust-code").exit_code == 0


@each("kind", ["objectives", "encoders", "datasets", "probes", "sources", "tables"])
def test_list_names_everything_there_is(kind: str) -> None:
    loaded = json.loads(lossscope("list", kind, "--format", "json").stdout)
    if kind != "tables":
        assert [item["name"] for item in loaded] == names(kind)
    assert all(item["what"] for item in loaded)
    text = lossscope("list", kind)
    assert all(item["name"] in text.stdout for item in loaded)


def test_diagrams_of_everything(tmp_path: Path) -> None:
    assert lossscope("diagram", "--points", "11").stdout.split() == ["diagram.png", "diagram-pairs.png"]
    assert lossscope("diagram", "--pair", "lin", "--points", "11", "-o", "a.svg").stdout == "a.svg\n"
    assert lossscope("diagram", "--objective", "unified:gamma=60", "--points", "11", "-o", "b.pdf").exit_code == 0
    numbers = lossscope("diagram", "--triplet", "cir", "--points", "5", "--format", "csv")
    assert len(numbers.stdout.splitlines()) == 1 + 25
    assert sorted(path.name for path in tmp_path.glob("[ab].*")) == ["a.svg", "b.pdf"]


def test_verify_says_good(ckpt: Path) -> None:
    result = lossscope("verify", ckpt)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{ckpt}: good")


def test_json_of_verify_is_one_document(ckpt: Path) -> None:
    loaded = json.loads(lossscope("verify", ckpt, ckpt, "--format", "json").stdout)
    assert [item["checkpoint"] for item in loaded] == [str(ckpt), str(ckpt)]
    assert loaded[0]["objective"] == "ntxent:tau=0.1"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lossscope_cli", "list", "objectives"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        written = stderr.read()
    assert (process.wait(60), written) == (1, b"")


def test_from_training_to_every_other_command(tmp_path: Path) -> None:
    trained = lossscope(*TRAIN, "--out", "run", "--lr", "0.002")
    assert trained.exit_code == 0, trained.stderr
    assert trained.stdout == "run\n"
    assert "epoch   1  loss" in trained.stderr
    longer = lossscope("train", "--resume", "run", "--epochs", "2")
    assert longer.exit_code == 0, longer.stderr
    rows = document(lossscope("eval", "run", "--split", "val", "--format", "json"))["rows"]
    metrics = pd.read_csv(tmp_path / "run" / "metrics.csv")
    best = metrics.loc[metrics["epoch"] > 0, "rsum"].max()
    assert next(row["mean"] for row in rows if row["statistic"] == "rsum") == pytest.approx(best)
    assert document(lossscope("cocos", "run", "--format", "json"))["rows"][0]["objective"] == "ntxent:tau=0.1"
    shown = lossscope("trajectory", "run", "-o", "run.svg")
    assert shown.exit_code == 0, shown.stderr
    assert "rsum" in shown.stdout
    assert (tmp_path / "run.svg").stat().st_size > 1000
    assert len(json.loads(lossscope("trajectory", "run", "--format", "json").stdout)) == 3
    assert lossscope("verify", "run/best.pt", "run/checkpoints/last.pt").exit_code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_an_interrupted_training_ends_with_130_and_can_go_on(number: signal.Signals, tmp_path: Path) -> None:
    words = ["-m", "lossscope_cli", *TRAIN, "--epochs", "500", "--out", "run"]
    process = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while not (line := process.stderr.readline()).startswith("epoch   1"):
        assert line, "training ended before its first epoch"
    os.kill(process.pid, number)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted: stopped" in rest and "; `lossscope train --resume run` continues it." in rest
    assert "Traceback" not in rest
    assert lossscope("verify", tmp_path / "run" / "checkpoints" / "last.pt").exit_code == 0


def test_a_training_that_is_interrupted_before_its_first_step_names_what_resumes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lossscope.training.loop.train_epochs", stop)
    result = lossscope(*TRAIN, "--out", "a run")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        130, "Interrupted: `lossscope train --resume 'a run'` continues it.",
    )  # fmt: skip
    monkeypatch.setattr("lossscope.training.loop.prepare_task", stop)  # there is nothing to resume
    assert "--resume" not in lossscope(*TRAIN, "--out", "other").stderr


def test_an_interrupted_sweep_ends_with_130(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lossscope.engine.sweep.Sweep.run", stop)
    result = lossscope("cocos", dump, "--objective", "triplet")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == (
        "Interrupted; no result is kept without --out DIR, which the same command would resume."
    )
    kept = lossscope("cocos", dump, "--objective", "triplet", "--out", "frame")
    assert kept.stderr.splitlines()[-1] == "Interrupted; what was finished is kept."
    monkeypatch.setattr("lossscope.retrieval.evaluate.evaluate", stop)
    assert lossscope("eval", dump).stderr.splitlines()[-1] == "Interrupted."


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "lossscope_cli", "eval", "none.pt"]
    short = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert short.returncode == 1
    assert "Traceback" not in short.stderr
    assert "there is nothing at none.pt" in short.stderr
    assert isinstance(lossscope("eval", "none.pt", "--debug").exception, InputError)


def test_tensorboard_events_are_written_beside_the_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = "--data scenes:train=30,val=10,test=10,size=16 --encoder vsepp:dim=8,words=8,width=4 --objective ntxent"
    out = tmp_path / "run"
    result = lossscope("train", *options.split(), "--epochs", "1", "--tensorboard", "--out", out)
    assert result.exit_code == 0, result.output
    events = EventAccumulator(str(tmp_path / "run.tb"))
    events.Reload()
    assert [event.step for event in events.Scalars("val/rsum")] == [0, 1]


def test_an_eps_that_no_weight_exceeds_is_a_warning(dump: Path) -> None:
    """`--eps 2` counted nothing of a loss whose weights are shares, and no message said so."""
    line = ("cocos", dump, "--objective", "ntxent:tau=0.1", "--objective", "npair:scale=20", "--objective", "triplet")
    warned = lossscope(*line, "--unit", "paper", "--eps", "2", "--eps", "0.01", "--eps", "1", "--quiet", columns=400)
    assert warned.exit_code == 0
    assert warned.stderr == (
        "Warning: no weight of ntxent:tau=0.1 exceeds 1 in the unit paper, so every count is 0 at --eps 2 and 1. The "
        "usual eps is 0.01.\n"
    )
    of_both = lossscope(*line, "--eps", "2", "--quiet", columns=400).stderr
    assert [f"no weight of {name}" in of_both for name in ("ntxent:tau=0.1", "npair:scale=20", "triplet")] == [1, 1, 0]
    assert of_both.count("in the unit relative, so every count is 0 at --eps 2.") == 2
    assert lossscope(*line, "--eps", "0.9", "--quiet").stderr == ""
