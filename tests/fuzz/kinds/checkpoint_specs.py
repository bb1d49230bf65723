"""The .json of a checkpoint, whose encoder, data and objective `lossscope cocos` builds."""

from __future__ import annotations

from pathlib import Path

from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.fuzz.commands import run_command
from tests.fuzz.trained import tiny_run, without_digests

FILES = {"model.json": "json"}
CHECKSUMMED = ()
SHARE = 0.5  # of the cases of other kinds: each sweeps


def make(folder: Path) -> None:
    """Convert the best checkpoint of a short training."""
    Checkpoint.load(tiny_run() / "best.pt").save(folder / "model.safetensors")
    without_digests(folder / "model.json")


def read(folder: Path) -> object:
    """Count its samples."""
    return run_command("cocos", "model.safetensors", "--format", "csv", "--no-cache", "--quiet")
