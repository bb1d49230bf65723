"""What the original files of SCAN, BFAN and SGRAF have in common: their towers, their sizes and how they are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor

from lossscope.errors import InputError

from ..base import EncoderSpec
from ..types import OpenedModel, ReleasedFile
from .options import fitted, flag, tensor_of, text, triplet_spec

TOWERS = ("image", "text", "similarity")
REGIONS = 36  # of the bottom-up features that all three were trained on
T = TypeVar("T")


def named(original: ReleasedFile) -> dict[str, Tensor]:
    """Every tensor of the file under our names: `image.`, `text.`, `similarity.` before the original's."""
    pairs = zip(TOWERS, original.towers, strict=False)
    return {f"{tower}.{name}": tensor for tower, held in pairs for name, tensor in held.items()}


def only_regions_and_words(original: ReleasedFile) -> bool:
    """Whether the file holds two towers, a linear map of regions and a GRU over words (SCAN, BFAN)."""
    if len(original.towers) != 2:
        return False
    first, second = original.towers
    return all(name.startswith("fc.") for name in first) and any(name.startswith("rnn.") for name in second)


def sizes(weights: Mapping[str, Tensor], name: str) -> tuple[int, int]:
    """Rows and columns of a matrix in the file. Raises InputError when it is missing, none or empty."""
    rows, columns = tensor_of(weights, name, 2).shape
    if not rows or not columns:
        raise InputError(f"{name} of the file must not be empty; got {rows} x {columns}")
    return rows, columns


def chosen(options: Mapping[str, Any], name: str, meanings: Mapping[str, T], absent: str) -> T:
    """What an option of the file means to us. Raises InputError for one that the originals do not have."""
    found = text(options, name, absent)
    if found not in meanings:
        raise InputError(f"option {name} of the file must be one of {', '.join(meanings)}; got {found[:60]!r}")
    return meanings[found]


def opened(
    spec: EncoderSpec,
    weights: Mapping[str, Tensor],
    item_shape: tuple[int, int],
    options: Mapping[str, Any],
    notices: Sequence[str] = (),
) -> OpenedModel:
    """The opened file, after its names and shapes were compared with the model's.

    Raises InputError telling the first that differs, or when it was trained without vectors of unit length.
    """
    for name in ("no_imgnorm", "no_txtnorm"):
        if flag(options, name, False):
            raise InputError(f"option {name} of the file must be false; got true. Such a model has no unit vectors")
    vocabulary_size = sizes(weights, "text.embed.weight")[0]
    found = fitted(spec, item_shape, vocabulary_size, weights)
    return OpenedModel(spec, found, item_shape, vocabulary_size, triplet_spec(options), notices=tuple(notices))
