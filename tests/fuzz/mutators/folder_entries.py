"""Remove, rename, double or swap the files of a folder, or replace a file by a folder, a link or a pipe."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable

_ACTIONS = ("remove", "rename", "double", "swap", "folder", "loop", "dangling", "pipe", "empty", "new", "bytes name")


def mutate(path: Path, rng: Generator) -> str:
    """Change one entry of the folder and return which and how."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "evil.py")
    if not files:
        raise Inapplicable("no files")
    file, other = files[rng.integers(len(files))], files[rng.integers(len(files))]
    action = _ACTIONS[rng.integers(len(_ACTIONS))]
    _change(file, other, action)
    return f"{action} {file.relative_to(path)}"


def _change(file: Path, other: Path, action: str) -> None:
    if action in ("remove", "folder", "loop", "dangling", "pipe"):
        file.unlink()
    if action == "rename":
        file.rename(file.with_name(f"x{file.name}"))
    elif action == "double":
        shutil.copy(file, file.with_name(f"{file.stem}2{file.suffix}"))
    elif action == "swap":
        first, second = file.read_bytes(), other.read_bytes()
        file.write_bytes(second)
        other.write_bytes(first)
    elif action == "folder":
        file.mkdir()
    elif action in ("loop", "dangling"):
        file.symlink_to(file.name if action == "loop" else "nowhere")
    elif action == "pipe":
        os.mkfifo(file)
    elif action == "empty":
        file.write_bytes(b"")
    elif action == "new":
        file.with_name(f"new{file.suffix}").write_bytes(b"\xff\0new")
    elif action == "bytes name":
        os.rename(os.fsencode(file), os.fsencode(file.with_suffix("")) + b"\xff" + os.fsencode(file.suffix))
