"""The commands to strike: small ones that write all they can, each into `out/x` of its folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.tiny import ENCODER, study_text

RECIPE = [
    "--data", "scenes:train=40,val=10,test=10,size=16", "--encoder", ENCODER,
    "--objective", "ntxent", "--batch-size", "16", "--lr", "0.002", "--device", "cpu", "--quiet",
]  # fmt: skip
STUDY = study_text(seeds=(0,), epochs=2, train=40)


@dataclass(frozen=True)
class Job:
    """A command line and its inputs."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], list[list[str]]]  # writes files into the folder, and returns commands to run in it
    finished: tuple[str, ...] = ()  # patterns of files below `out` that are written once, and never again
    redone: int = 0  # of the newest of them, which no table or manifest names yet
    resumed: tuple[str, ...] = ()  # the command after config.toml is there; empty: the same command

    def again(self, folder: Path) -> tuple[str, ...]:
        """Return the arguments that resume from what a fault left in a folder."""
        return self.resumed if self.resumed and (folder / "out/x/config.toml").is_file() else self.arguments


def command(arguments: tuple[str, ...] | list[str]) -> list[str]:
    """Return `lossscope ARGUMENTS` as a command of the running Python."""
    return [sys.executable, "-P", "-m", "lossscope_cli", *arguments]


def nothing(_folder: Path) -> list[list[str]]:
    return []


def _write_dump(folder: Path, n: int = 2000, seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    images, captions = (rng.standard_normal((n, 16)).astype(np.float32) for _ in range(2))
    unit = {
        name: x / np.linalg.norm(x, axis=1, keepdims=True) for name, x in (("images", images), ("captions", captions))
    }
    np.savez(folder / "dump.npz", **unit)
    return []


def _write_study(folder: Path) -> list[list[str]]:
    (folder / "tiny.toml").write_text(STUDY, encoding="utf-8")
    return []


def _train_run(folder: Path) -> list[list[str]]:
    return [["train", *RECIPE, "--epochs", "2", "--out", "out/run"]]


def _write_two_systems(folder: Path) -> list[list[str]]:
    for seed, name in enumerate(("a", "b")):
        (folder / name).mkdir()
        _write_dump(folder / name, 1000, seed)
    return []


_TRAIN = ("--save-every", "3")
_SWEEP = ("--batch-size", "483", "--out", "out/x", "--quiet", "--device", "cpu")
_DOCTOR = ("--objective", "ntxent:tau=0.1", "--batch-size", "64", "--no-cache", "--device", "cpu", "--quiet")
_PROBES = ("--probes", "similarity", "--probes", "tangent", "--objective", "triplet", "--per-query")

JOBS = (
    Job(
        "train",
        ("train", *RECIPE, *_TRAIN, "--epochs", "3", "--probe", "cocos", "--probe-every", "2", "--out", "out/x"),
        nothing,
        ("x/checkpoints/epoch-*.pt",),
        1,
        ("train", "--resume", "out/x", *_TRAIN, "--device", "cpu", "--quiet"),
    ),
    Job("sweep", ("cocos", "dump.npz", "--objective", "smoothap", *_SWEEP), _write_dump, ("x/part-*.parquet",), 1),
    Job("per-query", ("probe", "dump.npz", *_PROBES, *_SWEEP), _write_dump, ("x/part-*", "x/query-*"), 2),
    Job("mine", ("mine", "dump.npz", "--out", "out/x", "--top", "5", "--quiet"), _write_dump, ("x/*.safetensors",)),
    Job("study", ("study", "run", "tiny.toml", "--out", "out/x", "--device", "cpu", "--quiet"), _write_study),
    Job("report", ("report", "out/run", "--out", "out/x", "--device", "cpu", "--quiet"), _train_run),
    Job(
        "eval",
        ("eval", "dump.npz", "--run-files", "out/x", "--out", "out/x/eval.json", "--format", "json", "--quiet"),
        _write_dump,
    ),
    Job(
        "compare",
        ("compare", "a/dump.npz", "b/dump.npz", "--out", "out/x/c.csv", "--format", "csv", "--quiet"),
        _write_two_systems,
    ),
    Job("doctor", ("doctor", "dump.npz", *_DOCTOR, "--out", "out/x"), _write_dump),
    Job("audit", ("audit", "dump.npz", "--out", "out/x", "--device", "cpu", "--quiet"), _write_dump),
)
