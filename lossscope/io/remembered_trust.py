"""Which Python files did the user trust for a folder? Kept in the user's own state folder, never in that folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .files import fingerprint_of, write_text
from .plugin_fingerprints import plugin_fingerprint
from .trusted_code import TrustedCode, plugin_files


@dataclass(frozen=True)
class _Remembered:
    """Content of a file of the state folder."""

    folder: str  # resolved path of the run or study
    files: dict[str, str]  # resolved path of a Python file -> its fingerprint when it was trusted


def remember_trust(folder: Path, specs: Iterable[object]) -> str | None:
    """Remember that the Python files of specs are trusted for a folder; return why that failed, None if it did not.

    Args:
        folder: of a run or a study.
        specs: whose files are all trusted now.
    """
    files = {str(file.resolve()): plugin_fingerprint(file) for file in plugin_files(specs) if file.is_file()}
    if not files:
        return None
    file = _place(folder)
    content = {"folder": str(folder.resolve()), "files": {**_read(file, folder), **files}}
    try:
        write_text(file, json.dumps(content, indent=1) + "\n")
    except (OSError, InputError) as error:
        return f"that you trust {', '.join(files)} cannot be remembered ({error}); resuming will need --trust-code"
    return None


def remembered_trust(folder: Path) -> TrustedCode:
    """Return the files that were trusted for a folder and are what they were; a changed file must be trusted again."""
    files = _read(_place(folder), folder)
    kept = (Path(name) for name, known in files.items() if _is_unchanged(Path(name), known))
    return TrustedCode(frozenset(kept))


def state_folder() -> Path:
    """Return the folder of what lossscope remembers: LOSSSCOPE_STATE, or the user's state folder."""
    if os.environ.get("LOSSSCOPE_STATE"):
        return Path(os.environ["LOSSSCOPE_STATE"])
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "lossscope"


def _place(folder: Path) -> Path:
    return state_folder() / "trust" / f"{fingerprint_of(str(folder.resolve()))[:32]}.json"


def _read(file: Path, folder: Path) -> dict[str, str]:
    """Return path -> fingerprint; nothing where none is kept, or what is kept cannot be read."""
    if not os.path.isfile(file):
        return {}
    from .decode import decode
    from .json_files import read_json

    try:
        kept = decode(_Remembered, read_json(file), str(file))
    except InputError:
        return {}
    return kept.files if kept.folder == str(folder.resolve()) else {}


def _is_unchanged(file: Path, known: str) -> bool:
    return file.is_file() and plugin_fingerprint(file) == known
