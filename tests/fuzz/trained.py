"""Results of a short training that several kinds damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from lossscope.training.loop import train
from tests.tiny import RECIPE

from .commands import run_command
from .originals import shared


def tiny_run() -> Path:
    """Return a run folder of two epochs on tiny scenes."""
    return shared("run", _train) / "run"


def tiny_frame() -> Path:
    """Return the frame of a sweep of the run, with rows of single queries."""
    return shared("frame", _sweep) / "frame"


def _train(folder: Path) -> None:
    train(RECIPE, folder / "run")


def _sweep(folder: Path) -> None:
    run_command("probe", str(tiny_run()), "--out", str(folder / "frame"), "--per-query", "--no-cache", "--quiet")


def without_digests(path: Path) -> None:
    """Turn a checkpoint into format 2, which states no digests, so that a reader meets what digests would hide."""
    if path.suffix == ".json":
        values = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(_older(values), indent=1) + "\n", encoding="utf-8")
    else:
        torch.save(_older(torch.load(path, weights_only=True)), path)


def _older(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**values, "version": 2}.items() if name != "digests"}
