"""The folder `evaluation` of a run: which version of it is read, and of which choices and files it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossscope.io.json_files import read_json

SCHEMA = "lossscope.evaluation/2"


def evaluation_state(run: Path) -> str | None:
    """Say why a run folder has no evaluation that can be read; None where it has one."""
    manifest = run / "evaluation" / "manifest.json"
    if not manifest.is_file():
        return "trained, but its evaluation is missing"
    if read_json(manifest).get("schema") != SCHEMA:
        return "trained, but evaluated by another version of lossscope"
    return None


def is_done(folder: Path, wanted: Mapping[str, Any], plugins: Mapping[str, str]) -> bool:
    """Return whether an evaluation is of these choices, and of the Python files as they are now.

    Args:
        folder: of the evaluation.
        wanted: entries of its manifest.
        plugins: fingerprints of the files that are still there; what is gone cannot have changed.
    """
    file = folder / "manifest.json"
    if not file.is_file():
        return False
    manifest = read_json(file)
    before = manifest.get("plugins", {})
    same_files = all(before.get(name) == now for name, now in plugins.items())
    return same_files and {key: manifest.get(key) for key in wanted} == wanted
