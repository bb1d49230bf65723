"""A split through a frozen encoder: each image and each caption once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import on_device
from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, write_atomically

from .captions import CaptionBatcher

Progress = Callable[[str, int, int], None]


def embed(
    model: Encoder, sentences: CaptionBatcher, batch_size: int = 256, progress: Progress | None = None
) -> tuple[Tensor, Tensor]:
    """Vectors of all images (N, d) and captions (M, d) of a split, float32 on the CPU, by the model in eval mode.

    Raises InputError when one is not finite: its ranks would look perfect, as nothing is above NaN.
    """
    device, split = next(model.parameters()).device, sentences.split
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            images = _images(model, split, batch_size, device, progress)
            captions = _captions(model, sentences, batch_size, device, progress)
    finally:
        model.train(training)
    for what, vectors in (("image", images), ("caption", captions)):
        bad = ~torch.isfinite(vectors).all(1)
        if bool(bad.any()):
            raise InputError(
                f"{what} vectors of split {split.name!r} must be finite; row {int(bad.nonzero()[0])} is not. The "
                "training diverged: take an earlier checkpoint, or train with a lower --lr"
            )
    return images.clone(), captions.clone()


def read_cache(path: Path | None) -> tuple[Tensor, Tensor] | None:
    """The embeddings kept at `path`; None when there are none, or they are damaged (then they are removed)."""
    if path is None or not path.is_file():
        return None
    try:
        found = read_safetensors(path)
        return found["images"], found["captions"]
    except (InputError, KeyError):
        path.unlink(missing_ok=True)
        return None


def write_cache(path: Path | None, images: Tensor, captions: Tensor) -> None:
    """Keep embeddings at `path`; None keeps nothing, and a full or read-only folder costs time, never results."""
    if path is None:
        return
    with contextlib.suppress(OSError), write_atomically(path) as part:
        safetensors.torch.save_file({"images": images.contiguous(), "captions": captions.contiguous()}, part)


def cache_folder() -> Path:
    """Where embeddings are kept: LOSSSCOPE_CACHE, or the user's cache folder."""
    if os.environ.get("LOSSSCOPE_CACHE"):
        return Path(os.environ["LOSSSCOPE_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lossscope"


def _images(model: Encoder, split: Split, size: int, device: torch.device, progress: Progress | None) -> Tensor:
    parts = []
    for start in range(0, len(split.images), size):
        rows = np.arange(start, min(start + size, len(split.images)), dtype=np.int64)
        parts.append(model.encode_images(on_device(split.images.take(rows), device)).vectors.float().cpu())
        if progress:
            progress(f"encoding {split.name} images", int(rows[-1]) + 1, len(split.images))
    return torch.cat(parts)


def _captions(
    model: Encoder,
    sentences: CaptionBatcher,
    size: int,
    device: torch.device,
    progress: Progress | None,
) -> Tensor:
    order = np.argsort(sentences.lengths(), kind="stable").astype(np.int64)
    result: Tensor | None = None
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        vectors = model.encode_texts(*sentences.take(rows, device)).vectors.float().cpu()
        result = vectors.new_empty(len(order), vectors.shape[1]) if result is None else result
        result[torch.from_numpy(rows)] = vectors
        if progress:
            progress(f"encoding {sentences.split.name} captions", start + len(rows), len(order))
    if result is None:
        raise InputError(f"split {sentences.split.name!r} must have captions; it has none")
    return result
