"""The command line: what it promises, what it prints where, and how it says no."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from lossscope_cli import app
from PIL import Image
from typer.main import get_command

from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY, Frame
from lossscope.registry import names
from tests.command_line import document, lossscope, plain
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
    assert set(COMMANDS) <= set(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("objectives", [["triplet"], ["ntxent:tau=0.05", "smoothap", "triplet-sh", "goal"]])
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
    one = document(lossscope("eval", dump, "--format", "json"))["rows"]
    both = document(lossscope("eval", dump, dump, "--ensemble", "--format", "json"))["rows"]
    assert [row["mean"] for row in both] == [row["mean"] for row in one]


def test_the_known_form_is_one_deterministic_batch(dump: Path) -> None:
    words = "--batch-size all --no-shuffle --captions first --objective triplet --format json".split()
    first, second = (document(lossscope("cocos", dump, *words, "--seed", seed)) for seed in "01")
    assert {row["n"] for row in first["rows"]} == {1}
    assert [row["mean"] for row in first["rows"]] == [row["mean"] for row in second["rows"]]


def test_several_sources_get_a_frame_each(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "other.npz").write_bytes(dump.read_bytes())
    result = lossscope("cocos", dump, "other.npz", "--objective", "triplet", "--out", "frames")
    assert result.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "frames").iterdir()) == ["00-dump", "01-other"]


def test_an_objective_from_a_file_of_ones_own(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "my_loss.py").write_text(
        "from dataclasses import dataclass\nfrom lossscope.objectives.base import Loss, positive_of\n"
        "@dataclass(frozen=True)\nclass Mine(Loss):\n    scale: float = 1.0\n"
        "    def values(self, S, mask):\n"
        "        return self.scale * (S.masked_fill(~mask.negatives, 0).sum(1) - positive_of(S, mask)[:, 0])\n"
    )
    report = document(lossscope("cocos", dump, "--objective", "./my_loss.py:Mine:scale=2", "--format", "json"))
    assert {row["objective"] for row in report["rows"]} == {"./my_loss.py:Mine:scale=2"}
    words = ["train", "--data", DATA, "--encoder", ENCODER, "--epochs", "1", "--batch-size", "64", "--quiet"]
    trained = lossscope(*words, "--objective", "./my_loss.py:Mine")
    assert trained.stdout.split() == ["runs/scenes-Mine-seed0"], trained.stderr
    assert lossscope("cocos", "runs/scenes-Mine-seed0").exit_code == 0  # it was typed when the run was begun
    shutil.copytree("runs/scenes-Mine-seed0", "copy")
    refused = lossscope("cocos", "copy")
    assert refused.exit_code == 1
    assert "not imported unless you pass --trust-code" in refused.stderr
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
    assert "Interrupted: stopped" in rest
    assert "Traceback" not in rest
    assert lossscope("verify", tmp_path / "run" / "checkpoints" / "last.pt").exit_code == 0


def test_an_interrupted_sweep_ends_with_130(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lossscope.engine.sweep.Sweep.run", stop)
    result = lossscope("cocos", dump, "--objective", "triplet")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == (
        "Interrupted; nothing is kept without --out DIR, which the same command would resume."
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


@dataclass(frozen=True)
class Bad:
    """A command line that cannot work. words: files are those of the fixture `bad`; {train} stands for TRAIN."""

    words: str
    code: int
    fragment: str


BAD = [
    Bad("cocos none.pt", 1, "source must exist; there is nothing at none.pt"),
    Bad("cocos text.pt", 1, "text.pt must be a torch file; it starts with b'I am'"),
    Bad("cocos empty.pt", 1, "empty.pt must be a torch file; it is empty"),
    Bad("cocos cut.pt", 1, "cut.pt must be a whole torch file; it is cut off or damaged. Copy it again"),
    Bad("cocos foreign.pt", 1, "it holds argparse.Namespace objects, which are never loaded"),
    Bad("cocos tensor.pt", 1, "must be a lossscope checkpoint; it holds Tensor"),
    Bad("cocos newer.pt", 1, "Install a newer lossscope"),
    Bad("cocos nan.pt", 1, "vectors of split 'train' must be finite; row 0 is not. The training diverged"),
    Bad("cocos plugin.pt", 1, "not imported unless you pass --trust-code"),
    Bad("cocos lost.pt", 1, "split of nowhere must be one of"),
    Bad("cocos notes.txt", 1, "notes.txt must be one of: an embedding or similarity dump"),
    Bad("cocos emptyfolder", 1, "emptyfolder must be one of"),
    Bad("cocos nan.npz --objective triplet", 1, "images of nan.npz must be finite; row 3 is not"),
    Bad("cocos zero.npz --objective triplet", 1, "images of zero.npz must not be zero; row 2 is"),
    Bad("cocos cut.npz --objective triplet", 1, "cut.npz must be a whole .npz file"),
    Bad("cocos object.npz --objective triplet", 1, "plain numbers or texts, not pickled objects"),
    Bad("cocos odd.npz --objective triplet", 1, "got 23 captions for 12 images"),
    Bad("cocos cut.safetensors --objective triplet", 1, "must be a whole safetensors file"),
    Bad("cocos dump.npz --objective ntxnt", 2, "got 'ntxnt'; did you mean 'ntxent'?"),
    Bad("cocos none.pt --objective ntxnt", 1, "source must exist; there is nothing at none.pt"),
    Bad("cocos dump.npz --objective ntxent:tua=1", 2, "key of ntxent must be one of tau; got 'tua'; did you mean"),
    Bad("cocos dump.npz --objective ntxent:tau=cold", 2, "ntxent:tau must be float; got 'cold'"),
    Bad("cocos dump.npz --objective ntxent:tau=0", 1, "tau must be > 0; got 0.0"),
    Bad("cocos dump.npz --objective ntxent:tau", 2, "spec must be name:key=value"),
    Bad("cocos dump.npz --objective ./gone.py:Mine", 2, "plug-in file must exist; got './gone.py'"),
    Bad("cocos dump.npz --objective triplet --eps=-1", 2, "--eps must be a finite number >= 0; got -1"),
    Bad("cocos dump.npz --objective triplet --eps inf", 2, "--eps must be a finite number >= 0; got inf"),
    Bad("cocos dump.npz --objective triplet --eps nan", 2, "--eps must be a finite number >= 0; got nan"),
    Bad("cocos dump.npz --objective triplet --eps low", 2, "Invalid value for '--eps'"),
    Bad("cocos dump.npz --objective goal --convention released", 1, "convention of Goal must be one of corrected"),
    Bad("cocos dump.npz --objective triplet --convention paper", 2, "'paper' is not one of 'corrected', 'released'"),
    Bad("cocos dump.npz --objective triplet --sampling images", 1, "use --sampling pairs, or leave it out"),
    Bad("cocos dump.npz --objective triplet --sampling rows", 2, "'rows' is not one of 'pairs', 'images'"),
    Bad("cocos dump.npz --objective triplet --batch-size 1", 2, "--batch-size must be a number of at least 2, or all"),
    Bad("cocos dump.npz --objective triplet --batch-size ²", 2, "--batch-size must be a number of at least 2, or all"),
    Bad("cocos dump.npz --objective triplet --batch-size 99 --drop-last", 1, "Use a smaller one, or --keep-last"),
    Bad("cocos dump.npz --objective triplet --device tpu", 2, "--device must be auto, cpu, cuda or cuda:INDEX"),
    Bad("cocos dump.npz --objective triplet --device cuda:99", 1, "--device must be one that is there; cuda:99 is not"),
    Bad("cocos dump.npz --objective triplet --format xml", 2, "'xml' is not one of 'table', 'json', 'csv'"),
    Bad("cocos dump.npz --objective triplet --same-image drop", 2, "'drop' is not one of 'keep', 'mask'"),
    Bad("cocos dump.npz --objective triplet --captions last", 2, "'last' is not one of 'all', 'first'"),
    Bad("cocos dump.npz --objective triplet --per-query", 2, "--per-query needs --out"),
    Bad("cocos dump.npz --objective triplet --seed=-1", 2, "Invalid value for '--seed'"),
    Bad("cocos dump.npz --objective triplet --out usedfolder", 1, "usedfolder must be empty or a frame"),
    Bad("cocos dump.npz --objective triplet --out notes.txt", 1, "notes.txt must be a folder for the frame"),
    Bad("cocos dump.npz --objective triplet --out notes.txt/frame", 1, "notes.txt"),
    Bad("cocos ckpt.pt --split dev", 1, "split must be one of train, val, test; got 'dev'"),
    Bad("cocos ckpt.pt --data scenes:size=32", 1, "state it in the data set's spec, --data NAME:...,size=16"),
    Bad("cocos ckpt.pt --data flickr", 2, "data set must be one of beir, coco, "),
    Bad("cocos ckpt.pt --data karpathy:root=gone,name=flickr8k", 1, "gone/dataset_flickr8k.json must exist"),
    Bad("cocos ckpt.pt --data karpathy:root=pictures,name=toy,size=16", 1, "must be a whole picture"),
    Bad("cocos ckpt.pt --data karpathy:root=pictures", 2, "karpathy needs name=...; got 'karpathy:root=pictures'"),
    Bad("cocos", 2, "Missing argument"),
    Bad("cocos dump.npz --objective triplet --epsilon 1", 2, "No such option: --epsilon"),
    Bad("eval dump.npz --folds 5", 1, "--folds must divide the number of images, 12; got 5"),
    Bad("eval dump.npz --folds 0", 2, "Invalid value for '--folds'"),
    Bad("eval dump.npz other.npz --ensemble", 1, "sources of an ensemble must hold the same items"),
    Bad("eval dump.npz --format xml", 2, "'xml' is not one of 'table', 'json', 'csv'"),
    Bad("eval dump.npz --out emptyfolder", 1, "emptyfolder must be the name of a file; there is a folder"),
    Bad("eval usedfolder", 1, "usedfolder must be one of"),
    Bad("diagram --triplet cri", 2, "--triplet must be one of con, nca, cir; got 'cri'"),
    Bad("diagram --pair quad", 2, "--pair must be one of"),
    Bad("diagram --triplet cir --tau 0", 1, "tau must be > 0"),
    Bad("diagram --triplet cir -o a.jpg", 1, "picture must end in .pdf, .png or .svg; got 'a.jpg'"),
    Bad("diagram --triplet cir --low 2", 1, "range must be within -1..1"),
    Bad("diagram --triplet cir --points 1", 2, "Invalid value for '--points'"),
    Bad("diagram --triplet cir --objective triplet", 2, "--objective draws any objective; give it alone"),
    Bad("diagram --objective goal:pair=sig-ms", 1, "depend on the rest of the batch"),
    Bad("trajectory gone", 1, "gone must be a run folder with metrics.csv"),
    Bad("trajectory usedfolder", 1, "must be a run folder with metrics.csv"),
    Bad("trajectory badrun", 1, "metrics.csv must"),
    Bad("trajectory run -o a.bmp", 1, "picture must end in .pdf, .png or .svg"),
    Bad("trajectory run --format latex", 2, "'latex' is not one of 'table', 'csv', 'json'"),
    Bad("list losses", 2, "KIND must be one of objectives, encoders"),
    Bad("verify none.pt", 1, "source must exist; there is nothing at none.pt"),
    Bad("verify nan.pt", 1, "weights of nan.pt must be finite"),
    Bad("cocos dump.npz --tau 0.1", 2, "--tau. It is part of a spec: --objective ntxent:tau=0.1"),
    Bad("train --data scenes --width 8", 2, "--width. It is part of a spec: --encoder"),
    Bad("cocos dump.npz --nonsense 1", 2, "No such option: --nonsense"),
    Bad("cocos ckpt.pt --data flickr8k", 2, "did you mean 'karpathy:root=DIR,name=flickr8k'?"),
    Bad("cocos dump.npz --objective clip", 2, "did you mean 'ntxent'?"),
    Bad("cocos dump.npz --objective ./gone.py", 2, "must exist, and be followed by a name, ./gone.py:NAME"),
    Bad("verify usedfolder", 1, "must be a checkpoint file, a run folder or a dump; it is a folder without .pt"),
    Bad("train", 2, "train needs --data and --encoder and --objective"),
    Bad("train --resume gone", 1, "gone must be a run folder; it has no config.toml"),
    Bad("train --resume run --lr 1", 2, "only --epochs may change; got --lr"),
    Bad("train --resume run --out x", 2, "only --epochs may change; got --out"),
    Bad("train --resume run --epochs 1", 1, "--epochs must be at least the 2 that run has finished"),
    Bad("train --config gone.toml", 1, "gone.toml must be a readable TOML file"),
    Bad("train --config bad.toml", 1, "keys of bad.toml must be of data, encoder"),
    Bad("{train} --out usedfolder", 1, "usedfolder must be new or empty; it is not"),
    Bad("{train} --out notes.txt", 1, "notes.txt must be a folder to write; it is a file"),
    Bad("{train} --out notes.txt/run", 1, "notes.txt"),
    Bad("{train} --epochs=-1", 1, "epochs must be at least 0; got -1"),
    Bad("{train} --batch-size 1", 1, "batch-size must be at least 2; got 1"),
    Bad("{train} --lr nan", 1, "lr and lr-gamma must be > 0"),
    Bad("{train} --seed=-1", 1, "seed must be in 0.."),
    Bad("{train} --reduction max", 2, "'max' is not one of 'sum', 'mean', 'pairs', 'cells'"),
    Bad("{train} --precision fp8", 2, "'fp8' is not one of 'fp32', 'bf16', 'fp16'"),
    Bad("{train} --sampling images", 1, "sampling must be pairs or single for ntxent"),
    Bad("{train} --encoder vsepp:image=linear", 1, "image=linear must be given features"),
    Bad("{train} --encoder vsepp:image=resnet18,weights=gone.pth", 1, "gone.pth must exist"),
    Bad("{train} --encoder bert", 2, "encoder must be one of bfan"),
    Bad("{train} --data scenes:size=8", 1, "scenes:size must be in 16..512; got 8"),
    Bad("{train} --data karpathy:root=gone,name=x", 1, "gone/dataset_x.json must exist"),
    Bad("{train} --data precomp:root=gone", 1, "split of gone must be one of"),
    Bad("{train} --save-every 0", 2, "Invalid value for '--save-every'"),
    Bad("{train} --lr 1e30 --clip 0 --out diverged", 1, "training diverged"),
    Bad("nonsense", 2, "No such command 'nonsense'"),
]  # fmt: skip


@pytest.fixture
def bad(dump: Path, ckpt: Path, tiny_run: Path, tmp_path: Path) -> Path:
    """A folder with everything that can be wrong in it."""
    stored = {**torch.load(ckpt, weights_only=True), "version": 2, "digests": {}}
    (tmp_path / "text.pt").write_text("I am no checkpoint")
    (tmp_path / "empty.pt").touch()
    (tmp_path / "cut.pt").write_bytes(ckpt.read_bytes()[:5000])
    torch.save({**stored, "training": argparse.Namespace(lr=1)}, tmp_path / "foreign.pt")
    torch.save(torch.ones(3), tmp_path / "tensor.pt")
    torch.save({**stored, "version": 99}, tmp_path / "newer.pt")
    torch.save({**stored, "encoder": "./evil.py:Evil"}, tmp_path / "plugin.pt")
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    torch.save({**stored, "data": "precomp:root=nowhere"}, tmp_path / "lost.pt")
    weights = {
        name: tensor * torch.nan if tensor.is_floating_point() else tensor for name, tensor in stored["weights"].items()
    }
    torch.save({**stored, "weights": weights}, tmp_path / "nan.pt")
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "emptyfolder").mkdir()
    (tmp_path / "usedfolder").mkdir()
    (tmp_path / "usedfolder" / "thing.txt").write_text("x")
    good = dict(np.load(dump))
    for name, row, value in (("nan", 3, np.nan), ("zero", 2, 0.0)):
        images = good["images"].copy()
        images[row] = value
        np.savez(tmp_path / f"{name}.npz", **{**good, "images": images})
    np.savez(tmp_path / "object.npz", **{**good, "images": np.array([None] * 12)})
    np.savez(tmp_path / "odd.npz", images=good["images"], captions=good["captions"][:23])
    np.savez(tmp_path / "other.npz", **{**good, "caption_image": good["caption_image"][::-1]})
    (tmp_path / "cut.npz").write_bytes(dump.read_bytes()[:900])
    (tmp_path / "cut.safetensors").write_bytes(b"\x40\x00\x00")
    shutil.copytree(tiny_run, tmp_path / "run")
    (tmp_path / "badrun").mkdir()
    (tmp_path / "badrun" / "metrics.csv").write_text("")
    (tmp_path / "bad.toml").write_text("learning_rate = 1\n")
    (tmp_path / "pictures" / "images").mkdir(parents=True)
    (tmp_path / "pictures" / "images" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    entries = [{"filename": "0.png", "split": "train", "sentences": [{"raw": "a thing"}, {"raw": "it"}]}]
    entries.append({**entries[0], "filename": "1.png"})
    Image.new("RGB", (16, 16)).save(tmp_path / "pictures" / "images" / "1.png")
    (tmp_path / "pictures" / "dataset_toy.json").write_text(json.dumps({"images": entries}))
    return tmp_path


@each("case", BAD)
def test_what_cannot_work_is_one_message(case: Bad, bad: Path) -> None:
    words = [*(TRAIN if case.words.startswith("{train}") else []), *case.words.removeprefix("{train}").split()]
    result = lossscope(*words)
    message = plain(result.stderr)
    escaped = result.exception is not None and not isinstance(result.exception, SystemExit)
    assert not escaped, f"{type(result.exception).__name__}: {result.exception}"
    assert case.fragment in message
    assert result.exit_code == case.code
    assert result.stdout == ""
    assert "Traceback" not in message


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
