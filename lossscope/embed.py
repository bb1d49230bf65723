"""A split through a frozen encoder: each image and each caption once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from .datasets.base import Split
from .encoders.base import Encoder
from .errors import InputError
from .files import read_safetensors, replacing
from .vocabulary import Vocabulary, pad

Progress = Callable[[str, int, int], None]


def embed(
    model: Encoder, split: Split, words: Vocabulary, batch_size: int = 256, progress: Progress | None = None
) -> tuple[Tensor, Tensor]:
    """Unit vectors of all images (N, d) and captions (M, d), float32 on the CPU; the model is put in eval mode.

    Raises InputError when one is not finite: its ranks would look perfect, as nothing is above NaN.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            images = _images(model, split, batch_size, device, progress)
            captions = _captions(model, split, words, batch_size, device, progress)
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


def cached(path: Path | None, make: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The embeddings kept at `path`, made and kept there when absent or damaged; None keeps nothing."""
    if path is None:
        return make()
    if path.is_file():
        try:
            found = read_safetensors(path)
            return found["images"], found["captions"]
        except (InputError, KeyError):
            path.unlink(missing_ok=True)
    images, captions = make()
    try:
        with replacing(path) as part:
            safetensors.torch.save_file({"images": images.contiguous(), "captions": captions.contiguous()}, part)
    except OSError:
        return images, captions  # a full or read-only cache folder costs time, never results
    return images, captions


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
        parts.append(model.encode_images(torch.from_numpy(split.images.take(rows)).to(device)).vectors.float().cpu())
        if progress:
            progress(f"encoding {split.name} images", int(rows[-1]) + 1, len(split.images))
    return torch.cat(parts)


def _captions(
    model: Encoder,
    split: Split,
    words: Vocabulary,
    size: int,
    device: torch.device,
    progress: Progress | None,
) -> Tensor:
    ids = [words.encode(caption) for caption in split.captions]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    result: Tensor | None = None
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        tokens, lengths = pad([ids[i] for i in rows])
        side = model.encode_texts(torch.from_numpy(tokens).to(device), torch.from_numpy(lengths))
        vectors = side.vectors.float().cpu()
        result = vectors.new_empty(len(ids), vectors.shape[1]) if result is None else result
        result[torch.tensor(rows)] = vectors
        if progress:
            progress(f"encoding {split.name} captions", start + len(rows), len(ids))
    if result is None:
        raise InputError(f"split {split.name!r} must have captions; it has none")
    return result
