"""Embeddings or similarities in a file: what any other program can write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings, unit_rows
from lossscope.core.pair import Pair
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.files import fingerprint, fingerprint_of

from ._arrays import is_folder_of_arrays, read_arrays, read_rows
from ._inputs import caption_keys, numbered
from .base import Request
from .checkpoints.embed import cache_folder
from .checkpoints.schema import stored_as_safetensors


@dataclass(frozen=True)
class Dump:
    """an embedding or similarity dump (.npz, .safetensors, or a folder of .npy shards or FAISS indices)

    Arrays: `images` (N, d) and `captions` (M, d), or `similarity` (N, M); `caption_image` (M,) image row of each
    caption (absent: M must be k * N, image-major, and a notice says so); optional `image_id`, `caption_id`, and
    `caption`, the texts: images of one id, and captions of the same words, are the same input. Others are ignored.
    A folder has images*.npy, captions*.npy (joined in name order), or images.faiss, captions.faiss (flat indices;
    extra [faiss]), and may have metadata.parquet with a row per caption and those columns.
    Raises InputError for NaN, zero rows, wrong shapes.
    """

    path: Path

    @classmethod
    def accepts(cls, path: Path) -> bool:
        if path.is_dir():
            return is_folder_of_arrays(path)
        return path.suffix in (".npz", ".safetensors") and not stored_as_safetensors(path)

    def read(self, request: Request) -> SplitEmbeddings:
        arrays, origin = read_arrays(self.path, cache_folder() if request.cache else None)
        if request.caption_image is not None:
            arrays["caption_image"] = read_rows(request.caption_image)
            origin = fingerprint_of(origin, fingerprint(request.caption_image))
        known = {"images", "captions"} <= arrays.keys()
        if not known and "similarity" not in arrays:
            raise InputError(
                f"{self.path} must hold `images` and `captions`, or `similarity`; "
                f"got {', '.join(sorted(arrays)) or 'nothing'}"
            )
        notices: list[str] = []
        images = captions = similarity = None
        if known:
            images, captions = (
                _units(arrays[name], f"{name} of {self.path}", notices) for name in ("images", "captions")
            )
            wide = torch.promote_types(images.dtype, captions.dtype)
            images, captions = images.to(wide), captions.to(wide)
            if images.shape[1] != captions.shape[1]:
                raise InputError(
                    f"images and captions of {self.path} must have one width; "
                    f"got {images.shape[1]} and {captions.shape[1]}"
                )
            n, m = len(images), len(captions)
        else:
            similarity = _matrix(arrays["similarity"], f"similarity of {self.path}")
            if not bool(torch.isfinite(similarity).all()):
                row = int((~torch.isfinite(similarity)).any(1).nonzero()[0])
                raise InputError(f"similarity of {self.path} must be finite; row {row} is not")
            n, m = similarity.shape
        image_ids = _ids(arrays, "image_id", n, self.path)
        return SplitEmbeddings(
            name=str(self.path),
            images=images,
            captions=captions,
            similarity=similarity,
            caption_image=_caption_image(arrays, n, m, self.path, notices),
            image_ids=image_ids,
            caption_ids=_ids(arrays, "caption_id", m, self.path),
            fingerprint=origin,
            notices=tuple(notices),
            inputs=partial(_keys, image_ids if "image_id" in arrays else None, _texts(arrays, m, self.path)),
        )


def _matrix(array: Any, what: str) -> Tensor:
    found = array if isinstance(array, Tensor) else _numbers(np.asarray(array), what)
    if found.ndim != 2 or not found.is_floating_point():
        raise InputError(f"{what} must be a matrix of floats; got {tuple(found.shape)} of {found.dtype}")
    return found if found.dtype in (torch.float32, torch.float64) else found.float()


def _numbers(array: np.ndarray[Any, Any], what: str) -> Tensor:
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what} must be numbers; got {array.dtype}")
    kind = np.dtype(np.float64) if array.dtype == np.longdouble else array.dtype.newbyteorder("=")
    plain = array.astype(kind, copy=False)  # mapped files stay where they are
    return torch.from_numpy(np.ascontiguousarray(plain))


def _units(array: Any, what: str, notices: list[str]) -> Tensor:
    rows, notice = unit_rows(_matrix(array, what), what)
    notices += [notice] if notice else []
    return rows


def _caption_image(arrays: dict[str, Any], n: int, m: int, path: Path, notices: list[str]) -> Rows:
    found = arrays.get("caption_image")
    if found is None:
        if n == 0 or m % n:
            raise InputError(
                f"{path} must hold `caption_image` (the image row of each caption) unless there are k captions per "
                f"image in image order; got {m} captions for {n} images. Name a file of those rows: --caption-image"
            )
        notices.append(f"{path} has no caption_image: taking {m // n} captions per image, in image order")
        return np.repeat(np.arange(n, dtype=np.int64), m // n)
    rows = np.asarray(found.cpu().double() if _is_float(found) else found)
    if rows.shape != (m,) or rows.dtype.kind not in "iu":
        raise InputError(f"caption_image of {path} must be {m} integers; got {rows.shape} of {rows.dtype}")
    return rows.astype(np.int64)


def _is_float(found: Any) -> bool:
    return isinstance(found, Tensor) and found.is_floating_point()


def _ids(arrays: dict[str, Any], name: str, n: int, path: Path) -> list[str]:
    found = arrays.get(name)
    if found is None:
        return [str(i) for i in range(n)]
    ids = [str(i) for i in np.asarray(found).tolist()]
    if name == "image_id" and len(ids) != n and "caption_image" in arrays and len(ids) == len(arrays["caption_image"]):
        first = {int(row): i for row, i in zip(reversed(list(arrays["caption_image"])), reversed(ids), strict=True)}
        return [first.get(row, str(row)) for row in range(n)]
    if len(ids) != n:
        raise InputError(f"{name} of {path} must have {n} entries; got {len(ids)}")
    return ids


def _texts(arrays: dict[str, Any], m: int, path: Path) -> list[str] | None:
    found = arrays.get("caption")
    if found is None:
        return None
    texts = [str(text) for text in np.asarray(found).tolist()]
    if len(texts) != m:
        raise InputError(f"caption of {path} must have {m} entries; got {len(texts)}")
    return texts


def _keys(image_ids: list[str] | None, captions: list[str] | None) -> Pair[Rows | None]:
    """Numbers that are equal where the ids of images, and the words of captions, are."""
    return Pair(
        None if image_ids is None else numbered(image_ids), None if captions is None else caption_keys(captions)
    )
