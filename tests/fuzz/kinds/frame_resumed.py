"""A frame that lacks its last part, as the same `lossscope cocos --out` resumes it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from lossscope.io.frames import Frame
from tests.fuzz.commands import run_command
from tests.fuzz.trained import tiny_run

FILES = {"frame/manifest.json": "json", "frame/*.parquet": "parquet", "frame": "folder"}
CHECKSUMMED = ("frame/manifest.json", "frame/*.parquet")
SHARE = 0.5  # of the cases of other kinds: each sweeps
COMMAND = ("cocos", "model.pt", "--batch-size", "16", "--out", "frame", "--no-cache", "--quiet", "--format", "csv")


def make(folder: Path) -> None:
    """Sweep a checkpoint into a frame."""
    shutil.copy(tiny_run() / "best.pt", folder / "model.pt")
    here = Path.cwd()
    os.chdir(folder)
    try:
        run_command(*COMMAND)
    finally:
        os.chdir(here)
    manifest = json.loads((folder / "frame" / "manifest.json").read_text(encoding="utf-8"))
    (folder / "frame" / "manifest.json").write_text(json.dumps({**manifest, "done": False}), encoding="utf-8")


def read(folder: Path) -> object:
    """Resume it."""
    return run_command(*COMMAND), Frame(folder / "frame").read()
