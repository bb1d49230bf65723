"""Compare what a command left, file by file, with what the undisturbed command leaves, and name leftovers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

Snapshot = dict[str, str]  # path below the folder -> digest of its content, which must be equal
TIMED = ("events.jsonl", "log.txt")  # of the clock, not of the command
TRACEBACK = "Traceback (most recent call last)"


def snapshot(folder: Path) -> Snapshot:
    """Return the digests of all files of a folder; of a study's status without its seconds."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _digest(path) for path in files}


def differences(got: Snapshot, wanted: Snapshot) -> list[str]:
    """Return a line for each file that differs: missing, left over, or of other bytes."""
    lines = [f"missing {name}" for name in wanted.keys() - got.keys()]
    lines += [f"leftover {name}" for name in got.keys() - wanted.keys()]
    lines += [f"other bytes in {name}" for name in wanted.keys() & got.keys() if got[name] != wanted[name]]
    return sorted(lines)


def finished_files(folder: Path, patterns: tuple[str, ...]) -> dict[Path, int]:
    """Return the files that are written once -> their time of writing."""
    return {path: path.stat().st_mtime_ns for pattern in patterns for path in folder.glob(pattern)}


def tracebacks(folder: Path, texts: list[str]) -> list[str]:
    """Return a line for each traceback on stderr or in a worker's log, except one of Python while it starts."""
    logs = {path.as_posix(): path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("log.txt")}
    named = [("stderr", text) for text in texts] + list(logs.items())
    return [f"traceback in {name}: {text.splitlines()[-1][:200]}" for name, text in named if _is_ours(text)]


def _is_ours(text: str) -> bool:
    """Has a text a traceback from after Python began to run the command?"""
    return TRACEBACK in text and "<frozen site>" not in text


def _digest(path: Path) -> str:
    if path.name in TIMED:
        return ""
    content = path.read_bytes()
    if path.name == "status.json":
        content = json.dumps({**json.loads(content), "seconds": None}).encode()
    return hashlib.sha256(content).hexdigest()
