"""The folder `evaluation` of a run: its frames, each with its SHA-256, and of which choices and files they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.errors import InputError

from .column_types import require_types, types_of
from .frames import OPTIONAL, SUMMARY, TEXTS, require_columns
from .json_files import expect, member
from .manifests import read_manifest, write_manifest
from .parquet_tables import read_parquet, write_parquet
from .reading import show_path

SCHEMA = "lossscope.evaluation/3"
FINDINGS_SCHEMA = "lossscope.doctor/1"
_SEVERITIES = ("error", "warning", "note")
_COMPLETE = ("source", "direction", "statistic", "query", "image", "rank")  # columns without missing values
_SUMMARY = tuple(name for name in SUMMARY if name not in OPTIONAL)
_COLUMNS: Mapping[str, Sequence[str]] = {
    "rows": _SUMMARY,
    "what_if": _SUMMARY,
    "curves": ("source", "objective", "direction", "eps", "mean", "std", "n"),
    "retrieval": ("direction", "query", "rank", "ap5", "relevant"),  # of images and captions also image
    "per_query": ("objective", "direction", "probe", "query"),
    "hardest_negative_counts": ("label", "candidate", "count", "direction"),
    "heaviest_negatives": (
        "objective", "direction", "weight_unit", "list", "query_id", "query_text", "weight", "positive_similarity",
        "rank", "candidate_id", "candidate_text", "negative_weight", "share", "similarity", "known_positive",
    ),
    "pictures": ("id", "picture"),
}  # fmt: skip
"""Columns that each frame must have."""
_ADVICE = "Remove its folder; `lossscope study run`, or `lossscope report` for a run, writes it again"


def evaluation_state(run: Path) -> str | None:
    """Say why a run folder has no evaluation that can be read; None where it has one."""
    manifest = _manifest_file(run)
    if not manifest.is_file():
        return "trained, but its evaluation is missing"
    if read_manifest(manifest).get("schema") != SCHEMA:
        return "trained, but evaluated by another version of lossscope"
    return None


def is_done(run: Path, wanted: Mapping[str, Any], plugins: Mapping[str, str]) -> bool:
    """Return whether the evaluation of a run is of these choices, and of the Python files as they are now.

    Args:
        run: its folder.
        wanted: entries of the manifest.
        plugins: fingerprints of the files that are still there; what is gone cannot have changed.
    """
    file = _manifest_file(run)
    if not file.is_file():
        return False
    manifest = read_manifest(file)
    before = expect(manifest.get("plugins", {}), dict, f"'plugins' of {file}")
    same_files = all(before.get(name) == now for name, now in plugins.items())
    return same_files and {key: manifest.get(key) for key in wanted} == wanted


def evaluated_checkpoint(run: Path) -> str:
    """Return the fingerprint of the checkpoint that was evaluated; empty where the manifest has none."""
    return str(read_manifest(_manifest_file(run)).get("checkpoint", ""))


def write_evaluation(
    run: Path,
    frames: Mapping[str, pd.DataFrame],
    manifest: Mapping[str, Any],
    findings: Mapping[str, Any] | None = None,
) -> None:
    """Write frames in place of those of an earlier evaluation; the manifest goes first and is written last.

    Args:
        run: its folder.
        frames: by name.
        manifest: its entries besides the digests of the frames.
        findings: the doctor's document; None: none is written.
    """
    folder = run / "evaluation"
    for file in (_manifest_file(run), findings_file(run), *folder.glob("*.parquet")):
        file.unlink(missing_ok=True)
    files = {name: write_parquet(folder / f"{name}.parquet", rows) for name, rows in frames.items()}
    if findings is not None:
        write_manifest(findings_file(run), findings)
    write_manifest(_manifest_file(run), {**manifest, "files": files})


def frames_of(run: Path) -> dict[str, str]:
    """Return name -> SHA-256 of the frames of a run's evaluation. Raises InputError when there is none."""
    file = _manifest_file(run)
    if not os.path.lexists(file):
        raise InputError(f"{run} must be a run with an evaluation; it has none. `lossscope report` evaluates it")
    files = member(read_manifest(file), "files", dict, str(file))
    return {expect(name, str, f"'files' of {file}"): member(files, name, str, str(file)) for name in files}


def read_frame(run: Path, name: str) -> pd.DataFrame | None:
    """Return a frame of a run's evaluation; None where it has none of that name.

    Raises InputError when there is no evaluation, or the frame is missing, damaged or not what was written.
    """
    files = frames_of(run)
    if name not in files:
        return None
    file = run / "evaluation" / f"{name}.parquet"
    rows = read_parquet(file, complete=_COMPLETE, advice=_ADVICE, sha256=files[name])
    if len(rows):
        require_columns(rows, _COLUMNS.get(name, ()), show_path(file))
    texts = TEXTS | {"split", "data_fingerprint", "label", "candidate", "image", "list", "id", "picture"}
    texts |= {f"{side}_{what}" for side in ("query", "candidate") for what in ("id", "text")}
    require_types(rows, types_of(rows, texts | {"query"} if name == "retrieval" else texts), show_path(file))
    return rows


def findings_file(run: Path) -> Path:
    """Return the file of what the doctor found in a run."""
    return run / "evaluation" / "findings.json"


def read_findings(run: Path) -> dict[str, Any] | None:
    """Return the doctor's document of a run, `lossscope.doctor/1`; None where it was not examined by this version.

    Raises InputError for a damaged file.
    """
    file = findings_file(run)
    if not file.is_file():
        return None
    document = read_manifest(file)
    if member(document, "schema", str, str(file)) != FINDINGS_SCHEMA:
        return None
    found = expect(document.get("findings"), list, f"'findings' of {file}")
    for item in found:
        entry = expect(item, dict, f"'findings' of {file}")
        for key in ("id", "severity", "title", "why"):
            member(entry, key, str, str(file))
        if entry["severity"] not in _SEVERITIES:
            raise InputError(f"severity of {file} must be of {', '.join(_SEVERITIES)}; got {entry['severity']!r}")
        member(entry, "explains", list, str(file))
        for advice in member(entry, "advice", list, str(file)):
            expect(advice, dict, f"'advice' of {file}")
    return document


def unexplained(document: Mapping[str, Any]) -> list[str]:
    """Return what the doctor's document of a run says of its state and cannot explain; none of earlier versions."""
    return [str(entry.get("text")) for entry in document.get("unexplained", ()) if isinstance(entry, dict)]


def examined_recall(document: Mapping[str, Any]) -> float | None:
    """Return the lower recall@1 of both directions that the doctor's document states; None where it has none."""
    state = document.get("state")
    quantities = state.items() if isinstance(state, dict) else ()
    values = [
        quantity.get("value")
        for name, quantity in quantities
        if name.startswith("recall@1") and isinstance(quantity, dict)
    ]
    return min((float(value) for value in values if isinstance(value, int | float)), default=None)


def _manifest_file(run: Path) -> Path:
    return run / "evaluation" / "manifest.json"
