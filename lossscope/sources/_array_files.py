"""Files of arrays that other programs write: tensors of torch, a table of numbers, a lone similarity matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lossscope.core.request import Request
from lossscope.errors import InputError
from lossscope.io.arrays import in_memory_if_small, open_npy
from lossscope.io.number_tables import is_number_table, read_number_table
from lossscope.io.reading import show_path

from ._how_to_convert import how_to_convert
from ._torch_arrays import is_torch_dump, read_torch_arrays

_UNIT = 1e-3  # by which a row of unit length may be off


def is_array_file(path: Path) -> bool:
    """Return whether a file looks like one of these; quick, and never an error."""
    return path.suffix == ".npy" or is_torch_dump(path) or is_number_table(path)


def read_array_file(path: Path, request: Request) -> tuple[dict[str, Any], list[str], str | None]:
    """Return the arrays of a file by the names of a dump, what the user should know of them first, and their split.

    Raises InputError for a file that holds a single side, with the lines that save both.
    """
    if path.suffix == ".npy":
        return *_read_matrix(path, request), None
    if is_number_table(path):
        return *read_number_table(path), None
    return read_torch_arrays(path, request.split)


def _read_matrix(path: Path, request: Request) -> tuple[dict[str, Any], list[str]]:
    """Return a matrix as similarities: a square one, or any with the image row of each caption.

    Raises InputError for any other matrix, and for a square one whose rows have unit length, as embeddings have.
    """
    array, name = in_memory_if_small(open_npy(path, "c")), show_path(path)
    is_square = array.ndim == 2 and array.shape[0] == array.shape[1]
    if not is_square and (array.ndim != 2 or request.caption_image is None):
        raise InputError(f"{path} must be embeddings of two sides (.npz) or a model; {how_to_convert(path)}")
    shape = f"{array.shape[0]} x {array.shape[1]}"
    if is_square and request.caption_image is None and array.dtype.kind == "f" and array.size:
        norms = np.linalg.norm(array.astype(np.float64), axis=1)
        if bool((abs(norms - 1) < _UNIT).all()):
            raise InputError(
                f"{name} must be similarities; it is {shape} with rows of unit length, as embeddings "
                f"have: {how_to_convert(path)}"
            )
    return {"similarity": array}, [f"{name} is read as {shape} similarities, one row per query or image"]
