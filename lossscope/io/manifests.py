"""Manifests: JSON files that say what a folder is of, each with the SHA-256 of its own entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossscope.errors import InputError

from .digests import digests_of
from .files import write_text
from .json_files import read_json
from .reading import show_path

_DIGEST = "sha256"


def write_manifest(file: Path, entries: Mapping[str, Any]) -> None:
    """Write entries and their SHA-256 atomically.

    Args:
        file: to write.
        entries: plain values by name.
    """
    plain = json.loads(json.dumps({key: value for key, value in entries.items() if key != _DIGEST}))
    write_text(file, json.dumps({**plain, _DIGEST: _digest_of(plain)}, indent=1) + "\n")


def read_manifest(file: Path) -> dict[str, Any]:
    """Return the entries of a manifest, without their SHA-256; one of before they had any is read, too.

    Raises InputError when it is missing, no JSON object, or its entries are not those that were written.
    """
    entries = read_json(file)
    stated = entries.pop(_DIGEST, None)
    if stated is not None and stated != _digest_of(entries):
        raise InputError(
            f"entries of {show_path(file)} must match the SHA-256 that it states; they differ, so damage or a "
            "change came later. Copy the folder again, or remove it and make it again"
        )
    return entries


def _digest_of(entries: Mapping[str, Any]) -> str:
    return digests_of({"": entries})[""]
