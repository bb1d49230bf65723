"""A frame that lacks its last part, as the same `lossscope cocos --out` resumes it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lossscope.io.frames import Frame
from lossscope.io.manifests import read_manifest, write_manifest
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
    manifest = folder / "frame" / "manifest.json"
    write_manifest(manifest, {**read_manifest(manifest), "done": False})


def read(folder: Path) -> object:
    """Resume it."""
    return run_command(*COMMAND), Frame(folder / "frame").read()
