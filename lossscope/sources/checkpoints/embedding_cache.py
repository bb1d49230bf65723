"""Embeddings of a whole split that were computed before, in the cache folder."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from lossscope.io.vector_cache import read_entry, remove_entry, write_entry


def read_cache(path: Path | None, images: int, captions: int) -> tuple[Tensor, Tensor] | None:
    """Read the embeddings cached at `path`; None when there are none, or when they are damaged (then removed).

    Args:
        path: of the file; None: there is none.
        images: vectors that there must be of images.
        captions: and of captions.
    """
    vectors = None if path is None else read_entry(path)
    if path is None or vectors is None:
        return None
    pair = vectors.get("images"), vectors.get("captions")
    if pair[0] is None or pair[1] is None or not _fit(pair[0], pair[1], images, captions):
        remove_entry(path)
        return None
    return pair[0], pair[1]


def _fit(first: Tensor, second: Tensor, images: int, captions: int) -> bool:
    """Whether vectors are as many as they must be, float32 and of one width."""
    if first.dtype != torch.float32 or second.dtype != torch.float32:
        return False
    return first.shape[:-1] == (images,) and second.shape[:-1] == (captions,) and first.shape[-1] == second.shape[-1]


def write_cache(path: Path | None, images: Tensor, captions: Tensor, name: str, kind: str) -> None:
    """Cache embeddings at `path`, unless it is None. A full or read-only folder or memory costs time, not results.

    Args:
        path: of the file.
        images: vectors of images.
        captions: vectors of captions.
        name: of the model.
        kind: of the model.
    """
    if path is not None:
        write_entry(path, {"images": images, "captions": captions}, name, kind)
