"""The summary rows of a finished frame, kept in its manifest with what they are of, so that they can be cited later."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import InputError

from .column_types import require_types, types_of
from .frames import OPTIONAL, SUMMARY, SUMMARY_TYPES, TEXTS, Frame, further_columns, plain_rows, require_columns
from .json_files import member
from .reading import show_path

_SUMMARY, _ITEMS, _DATA = "summary", "items", "data"


@dataclass(frozen=True)
class Measurement:
    """What a finished frame says: its numbers, and all that was chosen for them."""

    rows: pd.DataFrame  # columns SUMMARY
    command: Mapping[str, Any]  # the entry `command` of the manifest
    versions: tuple[str, ...]  # of lossscope, that computed parts; "" for one that the frame does not state
    items: Mapping[str, int]  # name of a side, in the plural -> how many items it has
    data: str | None  # spec of the data; None: the source is itself the data


def finished_entries(summary: pd.DataFrame, items: Mapping[str, int], data: object) -> dict[str, Any]:
    """Return the entries of a finished frame's manifest: its summary rows, and what they are of.

    Args:
        summary: summary rows of all parts.
        items: name of a side, in the plural -> how many items it has.
        data: spec of the data that the source was trained on, or None.
    """
    return {
        _SUMMARY: plain_rows(summary),
        _ITEMS: {name: int(number) for name, number in items.items()},
        _DATA: None if data is None else str(data),
    }


def read_measurement(path: Path | str) -> Measurement:
    """Return what a finished frame says; every part is read, and is what was written.

    Raises InputError for a folder that is no frame, a frame that is damaged or not finished, or one of an earlier
    version, which kept no summary.
    """
    path, frame = Path(path), Frame(Path(path))
    if path.is_file():
        raise InputError(
            f"{show_path(path)} must be a frame, a folder that --out wrote; it is a file, without the "
            "fingerprint and the options of its numbers. Run the command again with --out FOLDER"
        )
    if not (path / "manifest.json").exists() and (frames := sorted(path.glob("*/manifest.json"))):
        folders = " ".join(shlex.quote(str(file.parent)) for file in frames)
        raise InputError(
            f"{show_path(path)} must be a frame; it is a folder of {len(frames)}. Name those that you mean: {folders}"
        )
    manifest = frame.manifest()
    where = show_path(frame.path / "manifest.json")
    if not manifest.get("done"):
        raise InputError(f"{show_path(path)} must be a finished frame; it is not. The same command resumes it")
    if _SUMMARY not in manifest:
        raise InputError(
            f"{show_path(path)} must state its summary; an earlier version wrote it. Run the same command again: it "
            "computes nothing twice, and adds it"
        )
    frame.read()
    records = member(manifest, _SUMMARY, list, where)
    if not all(isinstance(record, dict) for record in records):
        raise InputError(f"{_SUMMARY} of {where} must be rows of values by name; run the command again elsewhere")
    rows = pd.DataFrame(records)
    require_columns(rows, [name for name in SUMMARY if name not in OPTIONAL], where)
    rows = rows.reindex(columns=[*SUMMARY, *further_columns(rows)])
    for name, kind in SUMMARY_TYPES.items():
        if kind == "number" and rows[name].map(_is_number).all():
            rows[name] = rows[name].astype(float)
    require_types(rows, types_of(rows, TEXTS), where)
    items = member(manifest, _ITEMS, dict, where)
    data, command = manifest.get(_DATA), member(manifest, "command", dict, where)
    return Measurement(rows, command, frame.versions(), items, None if data is None else str(data))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool))
