"""Embeddings that were computed before, in the cache folder."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import torch
from torch import Tensor

from lossscope.errors import InputError, WriteError
from lossscope.io.files import read_safetensors, write_safetensors


def read_cache(path: Path | None, images: int, captions: int) -> tuple[Tensor, Tensor] | None:
    """Read the embeddings cached at `path`; None when there are none, or when they are damaged (then removed).

    Args:
        path: of the file; None: there is none.
        images: vectors that there must be of images.
        captions: and of captions.
    """
    if path is None or not path.is_file():
        return None
    try:
        vectors = read_safetensors(path, needs_digest=True)
        pair = vectors["images"], vectors["captions"]
        if [tuple(rows.shape[:-1]) for rows in pair] != [(images,), (captions,)]:
            raise InputError(f"{path} must be vectors of {images} images and {captions} captions")
        if pair[0].shape[-1] != pair[1].shape[-1] or not all(rows.dtype == torch.float32 for rows in pair):
            raise InputError(f"{path} must be float32 vectors of one width")
        return pair
    except (InputError, KeyError):
        with contextlib.suppress(OSError):  # of a cache that others may only read
            path.unlink()
        return None


def write_cache(path: Path | None, images: Tensor, captions: Tensor) -> None:
    """Cache embeddings at `path`, unless it is None. A full or read-only folder or memory costs time, not results."""
    if path is None:
        return
    with contextlib.suppress(OSError, WriteError, MemoryError):
        write_safetensors(path, {"images": images, "captions": captions})


def cache_folder() -> Path:
    """Return the folder of cached embeddings: LOSSSCOPE_CACHE, or the user's cache folder."""
    if os.environ.get("LOSSSCOPE_CACHE"):
        return Path(os.environ["LOSSSCOPE_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lossscope"
