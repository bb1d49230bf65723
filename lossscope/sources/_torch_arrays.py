"""Tensors in a torch file, by the names of a dump, in a dict of splits, or as a tuple of two sides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.files import read_torch
from lossscope.io.pickles.texts import texts_of
from lossscope.io.pickles.torch_zip import is_torchscript
from lossscope.io.reading import show_path

from ._how_to_convert import tensors_to_dump
from .checkpoints.schema import FORMAT

SIDES = (("queries", "documents"), ("images", "captions"), ("embeddings", "labels"), ("similarity",))
_OF_TORCH = ("storage", "cpu", "torch ", "torch._", "collections ", "cuda")  # beginnings of texts in any torch file
_OF_WEIGHTS = ("state_dict", "Namespace")


def is_torch_dump(path: Path) -> bool:
    """Return whether a torch file has names of a dump, or no names at all, and none of a model's weights."""
    if path.suffix not in (".pt", ".pth") or not path.is_file() or is_torchscript(path):
        return False
    texts = texts_of(path)
    if not texts or FORMAT in texts:
        return False
    names = {text for text in texts if not text.isdecimal() and not text.startswith(_OF_TORCH)}
    is_model = any(mark in name for name in names for mark in _OF_WEIGHTS) or any(
        name.endswith((".weight", ".bias")) for name in names
    )
    return not is_model and (not names or any(names.issuperset(sides) for sides in SIDES))


def read_torch_arrays(path: Path, split: str | None) -> tuple[dict[str, Any], list[str], str | None]:
    """Return the arrays of a torch file by name, what the user should know of them, and the split that was taken.

    Args:
        path: of the file, which torch reads without running anything in it.
        split: that is taken of a dict of splits; None: its only one.

    Raises:
        InputError: a file without two sides, or with several splits of other names.
    """
    content, name = read_torch(path), show_path(path)
    if isinstance(content, tuple | list) and len(content) == 2 and all(map(_is_matrix, content)):
        return (
            dict(zip(("queries", "documents"), content, strict=True)),
            [f"{name} is a tuple of two matrices: the first is taken as queries, the second as documents"],
            None,
        )
    if _has_sides(content):
        return _arrays(content), [], None
    splits = [key for key, value in content.items() if _has_sides(value)] if isinstance(content, Mapping) else []
    chosen = split if split in splits else splits[0] if len(splits) == 1 else None
    if splits and chosen is None:
        raise InputError(f"--split of {name} must be one of {', '.join(map(str, splits))}; got {split or 'none'}")
    if chosen is None:
        hint = tensors_to_dump(path, content)
        what = f"it holds {type(content).__name__}" + (f": {hint}" if hint else "")
        raise InputError(f"{name} must be a lossscope checkpoint, or hold two sides or a labelled set by name; {what}")
    others = [str(other) for other in splits if other != chosen]
    also = f"; {', '.join(others)} {'is' if len(others) == 1 else 'are'} not read" if others else ""
    return _arrays(content[chosen]), [f"{name} is read for its {str(chosen)!r}{also}"], str(chosen)


def _has_sides(content: Any) -> bool:
    return isinstance(content, Mapping) and any(set(sides) <= content.keys() for sides in SIDES)


def _arrays(content: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the tensors and the lists of texts or numbers."""
    arrays: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, Tensor):
            arrays[str(name)] = value.detach()
        elif isinstance(value, list | tuple) and all(isinstance(item, str | int) for item in value):
            arrays[str(name)] = np.array(value)
    return arrays


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2 and value.is_floating_point()
