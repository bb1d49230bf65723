"""What the released files of SCAN, BFAN and SGRAF share: their towers, their sizes and how they are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor

from lossscope.errors import InputError

from ..base import EncoderSpec
from ..types import OpenedModel, ReleasedFile
from .options import fit_weights, read_flag, read_text, require_tensor, triplet_spec

TOWERS = ("image", "text", "similarity")
REGIONS = 36  # of the bottom-up features that all three were trained on
T = TypeVar("T")


def prefixed_weights(released: ReleasedFile) -> dict[str, Tensor]:
    """Return all tensors of the file under our names: `image.`, `text.` or `similarity.` before the original's."""
    pairs = zip(TOWERS, released.towers, strict=False)
    return {f"{tower}.{name}": tensor for tower, tensors in pairs for name, tensor in tensors.items()}


def has_region_and_word_towers(released: ReleasedFile) -> bool:
    """Return whether the file holds two towers, a linear map of regions and a GRU over words (SCAN, BFAN)."""
    if len(released.towers) != 2:
        return False
    first, second = released.towers
    return all(name.startswith("fc.") for name in first) and any(name.startswith("rnn.") for name in second)


def matrix_shape(weights: Mapping[str, Tensor], name: str) -> tuple[int, int]:
    """Return the rows and columns of a matrix in the file. Raises InputError when it is missing, no matrix or empty."""
    rows, columns = require_tensor(weights, name, 2).shape
    if not rows or not columns:
        raise InputError(f"{name} of the file must not be empty; got {rows} x {columns}")
    return rows, columns


def translate_option(options: Mapping[str, Any], name: str, meanings: Mapping[str, T], default: str) -> T:
    """Return what an option of the file means here. Raises InputError for a value that the originals do not have.

    Args:
        options: of the file.
        name: of the option.
        meanings: value in the file -> what it means.
        default: value where the file has none.
    """
    value = read_text(options, name, default)
    if value not in meanings:
        raise InputError(f"option {name} of the file must be one of {', '.join(meanings)}; got {value[:60]!r}")
    return meanings[value]


def open_model(
    spec: EncoderSpec,
    weights: Mapping[str, Tensor],
    item_shape: tuple[int, int],
    options: Mapping[str, Any],
    notices: Sequence[str] = (),
) -> OpenedModel:
    """Return the opened file, after its names and shapes are compared with the model's.

    Raises InputError for the first that differs, and when the model was trained without vectors of unit length.
    """
    for name in ("no_imgnorm", "no_txtnorm"):
        if read_flag(options, name, False):
            raise InputError(f"option {name} of the file must be false; got true. Such a model has no unit vectors")
    vocabulary_size = matrix_shape(weights, "text.embed.weight")[0]
    fitted = fit_weights(spec, item_shape, vocabulary_size, weights)
    return OpenedModel(spec, fitted, item_shape, vocabulary_size, triplet_spec(options), notices=tuple(notices))
