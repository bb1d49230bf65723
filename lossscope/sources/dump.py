"""Embeddings or similarities in a file that any other program can write."""

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
from lossscope.encoders.released.containers import is_configured
from lossscope.errors import InputError
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.reading import show_path

from ._arrays import is_folder_of_arrays, read_arrays, read_rows
from ._dump_facts import describe
from ._inputs import caption_keys, number_values
from .base import Request
from .checkpoints.embed import cache_folder
from .checkpoints.schema import is_safetensors_checkpoint

_LARGEST_SIMILARITY = 1e12
_LARGEST_COSINE = 1.01  # of unit vectors, with the rounding of half precision


@dataclass(frozen=True)
class Dump:
    """an embedding or similarity dump (.npz, .safetensors, or a folder of .npy shards or FAISS indices)

    Arrays of a file; others are ignored:

    - `images` (N, d) and `captions` (M, d), or `similarity` (N, M).
    - `caption_image` (M,): image row of each caption. Without it M must be k * N, image-major, and a warning says so.
    - `image_id`, `caption_id` and `caption` (the texts), all optional: images of one id, and captions of the same
      words, are the same input.

    A folder has images*.npy and captions*.npy (concatenated in the order of their names), or images.faiss and
    captions.faiss (flat indices; extra [faiss]), and may have metadata.parquet with a row per caption and the columns
    above. Raises InputError for NaN, zero rows and wrong shapes.
    """

    path: Path  # the file or folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        if path.is_dir():
            return is_folder_of_arrays(path)
        if path.suffix == ".safetensors" and is_configured(path):
            return False  # weights beside their configuration
        return path.suffix in (".npz", ".safetensors") and not is_safetensors_checkpoint(path)

    def read(self, request: Request) -> SplitEmbeddings:
        arrays, origin = read_arrays(self.path, cache_folder() if request.cache else None)
        if request.caption_image is not None:
            arrays["caption_image"] = read_rows(request.caption_image)
            origin = fingerprint_of(origin, fingerprint(request.caption_image))
        has_vectors = {"images", "captions"} <= arrays.keys()
        if not has_vectors and "similarity" not in arrays:
            raise InputError(
                f"{self.path} must hold `images` and `captions`, or `similarity`; "
                f"got {', '.join(sorted(arrays)) or 'nothing'}"
            )
        notices: list[str] = []
        warnings: list[str] = []
        images = captions = similarity = None
        if has_vectors:
            images, captions = (
                _unit_rows(arrays[name], f"{name} of {self.path}", notices) for name in ("images", "captions")
            )
            dtype = torch.promote_types(images.dtype, captions.dtype)
            images, captions = images.to(dtype), captions.to(dtype)
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
            notices += _beyond_cosines(similarity, self.path)
            n, m = similarity.shape
        caption_image = _caption_image(arrays, n, m, self.path, notices, warnings)
        image_ids = _ids(arrays, "image_id", n, self.path)
        return SplitEmbeddings(
            name=show_path(self.path),
            images=images,
            captions=captions,
            similarity=similarity,
            caption_image=caption_image,
            image_ids=image_ids,
            caption_ids=_ids(arrays, "caption_id", m, self.path),
            fingerprint=origin,
            notices=tuple(notices),
            warnings=tuple(warnings),
            read_input_keys=partial(_keys, image_ids if "image_id" in arrays else None, _texts(arrays, m, self.path)),
        )

    def describe(self) -> dict[str, str]:
        """Read everything and return what is in it, name -> text. Raises InputError where something is wrong."""
        return describe(self.read(Request(cache=False)))


def _beyond_cosines(similarity: Tensor, path: Path) -> list[str]:
    """Return a notice where similarities are no cosines: weights of a loss at tau are then of other similarities."""
    largest = float(similarity.abs().max()) if similarity.numel() else 0.0
    if largest <= _LARGEST_COSINE:
        return []
    if largest > _LARGEST_SIMILARITY:
        raise InputError(
            f"similarities of {path} must be at most {_LARGEST_SIMILARITY:g}, beyond which no loss is computed; one is "
            f"{largest:.3g}. Write cosines"
        )
    return [
        f"similarities of {path} reach {largest:.3g}, so they are no cosines (at most 1). Where they were divided by "
        "the temperature, write the cosines: tau, margins and eps are of them"
    ]


def _matrix(array: Any, what: str) -> Tensor:
    matrix = array if isinstance(array, Tensor) else _tensor(np.asarray(array), what)
    if matrix.ndim != 2 or not matrix.is_floating_point():
        raise InputError(f"{what} must be a matrix of floats; got {tuple(matrix.shape)} of {matrix.dtype}")
    if not matrix.numel():
        raise InputError(f"{what} must hold numbers; got {tuple(matrix.shape)}, which has none")
    return matrix if matrix.dtype in (torch.float32, torch.float64) else matrix.float()


def _tensor(array: np.ndarray[Any, Any], what: str) -> Tensor:
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what} must be numbers; got {array.dtype}")
    dtype = np.dtype(np.float64) if array.dtype == np.longdouble else array.dtype.newbyteorder("=")
    native = array.astype(dtype, copy=False)  # memory-mapped files are not read
    return torch.from_numpy(np.ascontiguousarray(native))


def _unit_rows(array: Any, what: str, notices: list[str]) -> Tensor:
    rows, notice = unit_rows(_matrix(array, what), what)
    notices += [notice] if notice else []
    return rows


def _caption_image(arrays: dict[str, Any], n: int, m: int, path: Path, notices: list[str], warnings: list[str]) -> Rows:
    array = arrays.get("caption_image")
    if array is None:
        if n == 0 or m % n:
            raise InputError(
                f"{path} must hold `caption_image` (the image row of each caption) unless there are k captions per "
                f"image in image order; got {m} captions for {n} images. Give a file of those rows: --caption-image"
            )
        if m == n:
            notices.append(f"{path} has no caption_image: image and caption of one row are taken as a pair")
        else:
            warnings.append(
                f"{path} has no caption_image: its {m} captions are taken as {m // n} of each image, in image order, "
                "every one a positive of its image. Where some are hard negatives, or in another order, state the "
                "image row of each: caption_image in the file, or --caption-image FILE"
            )
        return np.repeat(np.arange(n, dtype=np.int64), m // n)
    rows = np.asarray(array.cpu().double() if _is_float(array) else array)
    if rows.shape != (m,) or rows.dtype.kind not in "iu":
        raise InputError(f"caption_image of {path} must be {m} integers; got {rows.shape} of {rows.dtype}")
    return rows.astype(np.int64)


def _is_float(array: Any) -> bool:
    return isinstance(array, Tensor) and array.is_floating_point()


def _column(arrays: dict[str, Any], name: str, path: Path) -> list[Any]:
    """Return the values of an array of one dimension. Raises InputError for any other."""
    array = arrays[name]
    if array.ndim != 1:
        raise InputError(f"{name} of {path} must be a list; got {array.dtype} {tuple(array.shape)}")
    return list(array.tolist())


def _ids(arrays: dict[str, Any], name: str, n: int, path: Path) -> list[str]:
    if name not in arrays:
        return [str(i) for i in range(n)]
    ids = [str(i) for i in _column(arrays, name, path)]
    if name == "image_id" and len(ids) != n and "caption_image" in arrays and len(ids) == len(arrays["caption_image"]):
        first = {int(row): i for row, i in zip(reversed(list(arrays["caption_image"])), reversed(ids), strict=True)}
        return [first.get(row, str(row)) for row in range(n)]
    if len(ids) != n:
        raise InputError(f"{name} of {path} must have {n} entries; got {len(ids)}")
    return ids


def _texts(arrays: dict[str, Any], m: int, path: Path) -> list[str] | None:
    if "caption" not in arrays:
        return None
    texts = [str(text) for text in _column(arrays, "caption", path)]
    if len(texts) != m:
        raise InputError(f"caption of {path} must have {m} entries; got {len(texts)}")
    return texts


def _keys(image_ids: list[str] | None, captions: list[str] | None) -> Pair[Rows | None]:
    """Return numbers of the images, equal where their ids are, and of the captions, equal where their words are."""
    return Pair(
        None if image_ids is None else number_values(image_ids), None if captions is None else caption_keys(captions)
    )
