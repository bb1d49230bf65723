"""What LossScope writes: the flight recorder's folder, and the history that `save` keeps; the doctor reads both."""

from __future__ import annotations

from pathlib import Path

import torch

import lossscope
from tests.fuzz.commands import run_command

FILES = {
    "recorder/log.csv": "csv", "recorder/step-000005.npz": "npz", "recorder/manifest.json": "json",
    "recorder": "folder", "history.csv": "csv", "history.parquet": "parquet",
}  # fmt: skip
CHECKSUMMED = ("recorder/step-000005.npz", "history.parquet")
SHARE = 0.5  # of the cases of other kinds: each looks for every finding


def make(folder: Path) -> None:
    """Run a loop that breaks in its sixth step."""
    generator = torch.Generator().manual_seed(0)
    scope = lossscope.LossScope("ntxent:tau=0.1", ("similarity",), recorder=2, recorder_folder=folder / "all")
    for step in range(6):
        vectors = torch.nn.functional.normalize(torch.randn(2, 16, 8, generator=generator), dim=2)
        scope.watch(images=vectors[0], captions=vectors[1], step=step)
        scope.log(loss=3.0 - step / 10)
    recorded = scope.write_recorder("exception")
    assert recorded is not None
    recorded.rename(folder / "recorder")
    (folder / "all").rmdir()
    scope.save(folder / "history.csv")
    scope.save(folder / "history.parquet")


def read(folder: Path) -> object:
    """Examine the last batch, the log and the histories."""
    log = ("doctor", "--batch-size", "16", "--format", "json", "--log")
    return [
        run_command("doctor", "recorder/step-000005.npz", "--batch-size", "16", "--no-cache", "--format", "json"),
        run_command(*log, "recorder/log.csv"),
        run_command(*log, "history.csv", "--column", "loss=i2t/s_pos"),
        run_command(*log, "history.parquet", "--column", "loss=i2t/s_pos"),
    ]
