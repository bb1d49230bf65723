"""The folder `evaluation` of a run: which version of it is read."""

from __future__ import annotations

from pathlib import Path

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
