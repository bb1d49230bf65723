"""Remove, rename, double or swap the files of a folder, or put a folder, a link or a pipe in the place of one."""

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
    one, other = files[rng.integers(len(files))], files[rng.integers(len(files))]
    action = _ACTIONS[rng.integers(len(_ACTIONS))]
    _change(one, other, action)
    return f"{action} {one.relative_to(path)}"


def _change(one: Path, other: Path, action: str) -> None:
    if action in ("remove", "folder", "loop", "dangling", "pipe"):
        one.unlink()
    if action == "rename":
        one.rename(one.with_name(f"x{one.name}"))
    elif action == "double":
        shutil.copy(one, one.with_name(f"{one.stem}2{one.suffix}"))
    elif action == "swap":
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
    elif action == "folder":
        one.mkdir()
    elif action in ("loop", "dangling"):
        one.symlink_to(one.name if action == "loop" else "nowhere")
    elif action == "pipe":
        os.mkfifo(one)
    elif action == "empty":
        one.write_bytes(b"")
    elif action == "new":
        one.with_name(f"new{one.suffix}").write_bytes(b"\xff\0new")
    elif action == "bytes name":
        os.rename(os.fsencode(one), os.fsencode(one.with_suffix("")) + b"\xff" + os.fsencode(one.suffix))
