"""Correct the checksums of a damaged file, as an attacker would."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from lossscope.io.digests import digests_of
from lossscope.io.files import write_safetensors
from lossscope.io.manifests import read_manifest, write_manifest
from lossscope.io.rows_on_disk import checksum_file

from .torch_files import write_torch

SIGNABLE = frozenset({
    "json_keys", "json_values", "npy_content", "parquet_columns", "plugin_specs", "safetensors_content",
    "torch_content", "torch_plugins",
})  # fmt: skip
"""Mutators after which the file's library can still read the file."""


def sign(file: Path, before: str) -> bool:
    """Replace a file's old digests by those of its new content; return whether there were any.

    Args:
        file: damaged.
        before: SHA-256 of the file as it was.
    """
    signed = [sign_part(file) for sign_part in (_sign_manifest, _sign_checkpoint, _sign_tensors, _sign_rows)]
    after = hashlib.sha256(file.read_bytes()).hexdigest()
    return any([*signed, *(_replace(manifest, before, after) for manifest in file.parent.glob("*.json"))])


def _replace(manifest: Path, before: str, after: str) -> bool:
    try:
        text = manifest.read_text(encoding="utf-8")
        if before not in text:
            return False
        manifest.write_text(text.replace(before, after), encoding="utf-8")
        return _sign_manifest(manifest)
    except (OSError, ValueError):
        return False


def _sign_manifest(file: Path) -> bool:
    """State the digest of a manifest's entries."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if "sha256" not in content:
            return False
        write_manifest(file, content)
        return bool(read_manifest(file))
    except Exception:  # no JSON, nested without end, no file
        return False


def _sign_checkpoint(file: Path) -> bool:
    """State the digests of a checkpoint's parts."""
    if file.suffix != ".pt":
        return False
    try:
        content = torch.load(file, weights_only=True)
        parts = {name: value for name, value in content.items() if name not in ("format", "version", "digests")}
        write_torch(file, {**content, "digests": digests_of(parts)})
    except Exception:  # no torch file, no checkpoint
        return False
    return True


def _sign_tensors(file: Path) -> bool:
    """State the digest of a file's tensors."""
    if file.suffix != ".safetensors":
        return False
    try:
        write_safetensors(file, safetensors.torch.load_file(file))
    except Exception:  # no safetensors file
        return False
    return True


def _sign_rows(file: Path) -> bool:
    """State the checksums of the rows of an array."""
    if not checksum_file(file).is_file():
        return False
    try:
        rows = np.load(file, allow_pickle=False)
        np.save(checksum_file(file), np.array([zlib.crc32(row.tobytes()) for row in rows], np.uint32))
    except Exception:  # no array of rows
        return False
    return True
