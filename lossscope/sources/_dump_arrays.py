"""Arrays of a dump as tensors: matrices of finite numbers, rows of unit length, ids and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossscope.core.item_ids import repeated_rows, rows_text
from lossscope.core.pair import Pair
from lossscope.core.similarity import LARGEST_SIMILARITY, largest_beyond_cosines
from lossscope.core.types import Rows
from lossscope.core.unit_vectors import unit_rows
from lossscope.errors import InputError
from lossscope.io.exact_texts import IN_ARRAYS
from lossscope.io.json_files import shorten

_TRANSPOSED = ". Rows of similarity are images: where yours are captions, write similarity=S.T"


def beyond_cosines(similarity: Tensor, path: Path) -> list[str]:
    """Return a notice where similarities are not cosines: weights of a loss at tau are then of other similarities."""
    largest = largest_beyond_cosines(similarity)
    if largest is None:
        return []
    if largest > LARGEST_SIMILARITY:
        raise InputError(
            f"similarities of {path} must be at most {LARGEST_SIMILARITY:g}, as lossscope computes no loss "
            f"beyond it; one is {largest:.3g}. Write cosines"
        )
    return [
        f"similarities of {path} reach {largest:.3g}, so they are not cosines (at most 1). Where they were divided by "
        "the temperature, write the cosines: tau, margins and eps are of them"
    ]


def finite_similarity(array: Any, path: Path, notices: list[str], raw: bool = False) -> Tensor:
    """Return a matrix of finite similarities; a notice is added where they are not cosines."""
    similarity = matrix_of(array, f"similarity of {path}")
    if raw:
        return similarity
    if not bool(torch.isfinite(similarity).all()):
        row = int((~torch.isfinite(similarity)).any(1).nonzero()[0])
        raise InputError(f"similarity of {path} must be finite; row {row} is not")
    notices += beyond_cosines(similarity, path)
    return similarity


def matrix_of(array: Any, what: str) -> Tensor:
    """Return a matrix of float32 or float64. Raises InputError for anything else, and for one without numbers."""
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


def numpy_of(array: Any) -> np.ndarray[Any, Any]:
    """Return an array of a dump as one of numpy, floats as float64 where it is a tensor: numpy lacks some types."""
    if not isinstance(array, Tensor):
        return np.asarray(array)
    numbers: np.ndarray[Any, Any] = (array.double() if array.is_floating_point() else array).cpu().numpy()
    return numbers


def unit_matrix(array: Any, what: str, notices: list[str], raw: bool = False) -> Tensor:
    """Return rows of unit length; where they had to be normalised, a notice is added."""
    if raw:
        return matrix_of(array, what)
    rows, notice = unit_rows(matrix_of(array, what), what)
    notices += [notice] if notice else []
    return rows


def column_of(arrays: dict[str, Any], name: str, path: Path) -> list[Any]:
    """Return the values of an array of one dimension. Raises InputError for any other."""
    array = arrays[name]
    if array.ndim != 1:
        raise InputError(f"{name} of {path} must be a list; got {array.dtype} {tuple(array.shape)}")
    return list(array.tolist())


def read_ids(arrays: dict[str, Any], name: str, n: int, path: Path, notices: list[str] | None = None) -> list[str]:
    """Return the ids of n items, or their row numbers; a notice is added where two rows of a side have one id.

    Raises InputError for another number of ids.
    """
    if name not in arrays:
        return [str(i) for i in range(n)]
    ids = [IN_ARRAYS.read(str(i)) for i in column_of(arrays, name, path)]
    if name == "image_id" and len(ids) != n and "caption_image" in arrays and len(ids) == len(arrays["caption_image"]):
        first = {int(row): i for row, i in zip(reversed(list(arrays["caption_image"])), reversed(ids), strict=True)}
        return [first.get(row, str(row)) for row in range(n)]
    if len(ids) != n:
        raise InputError(f"{name} of {path} must have {n} entries; got {len(ids)}")
    repeated = {} if notices is None else repeated_rows(ids)
    if repeated and notices is not None:
        (item, rows), again = next(iter(repeated.items())), sum(map(len, repeated.values())) - len(repeated)
        pairs = "caption_image" if name == "image_id" else "positives"
        what = (
            f"{again} of {n} rows of {path} have the {name} of an earlier row, such as {shorten(item)} "
            f"({rows_text(rows)})"
        )
        notices.append(
            f"{what}: files that name captions by ids need ids that differ"
            if name == "caption_id"
            else f"{what}: an item is then a negative of its own match. Keep one row of each, and name it in {pairs}; "
            "or, with ids or texts of both sides, --mask same-text"
        )
    return ids


def texts_by_id(
    ids: Sequence[Sequence[str]], texts: Sequence[Sequence[str] | None]
) -> Callable[[], Pair[Mapping[str, str] | None]] | None:
    """Return what reads id -> text of both sides; None where neither has texts.

    An id that several items have is left out, unless they have one text.

    Args:
        ids: of both sides.
        texts: of both sides; None of a side without texts.
    """
    if all(side is None for side in texts):
        return None
    return lambda: Pair(*(_texts_of_ids(*side) for side in zip(ids, texts, strict=True)))


def _texts_of_ids(ids: Sequence[str], texts: Sequence[str] | None) -> Mapping[str, str] | None:
    if texts is None:
        return None
    by_id: dict[str, set[str]] = {}
    for id, text in zip(ids, texts, strict=True):
        by_id.setdefault(id, set()).add(text)
    return {id: stated.pop() for id, stated in by_id.items() if len(stated) == 1}


def caption_image_of(
    arrays: dict[str, Any], n: int, m: int, path: Path | str, notices: list[str], warnings: list[str]
) -> Rows:
    """Return the image row of each of m captions; where it is not stated they are k of each image, in image order.

    Raises InputError for rows of another number or type, and for m that is no multiple of n.
    """
    array = arrays.get("caption_image")
    if array is None:
        if n == 0 or m % n:
            raise InputError(
                f"{path} must hold `caption_image` (the image row of each caption) unless there are k captions per "
                f"image in image order; got {m} captions for {n} images. Give a file of those rows: --caption-image"
                + (_TRANSPOSED if "similarity" in arrays and m and n % m == 0 else "")
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
        hint = _TRANSPOSED if "similarity" in arrays and rows.shape == (n,) else ""
        raise InputError(f"caption_image of {path} must be {m} integers; got {rows.shape} of {rows.dtype}{hint}")
    return rows.astype(np.int64)


def _is_float(array: Any) -> bool:
    return isinstance(array, Tensor) and array.is_floating_point()
