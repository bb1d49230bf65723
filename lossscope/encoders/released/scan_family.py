"""What the released files of SCAN, BFAN and SGRAF share: their towers, their sizes and how they are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor

from lossscope.errors import InputError

from ..base import EncoderSpec
from ..types import OpenedModel, ReleasedFile
from .options import count_layers, fit_weights, read_flag, read_text, require_agreement, require_tensor, triplet_spec

_TOWERS = ("image", "text", "similarity")
_T = TypeVar("_T")


def prefixed_weights(released: ReleasedFile) -> dict[str, Tensor]:
    """Return all tensors of the file under our names: `image.`, `text.` or `similarity.` before the original's.

    The g of a weight norm is one number, which torch before 0.4 wrote as a vector of one.
    """
    pairs = zip(_TOWERS, released.towers, strict=False)
    weights = {f"{tower}.{name}": tensor for tower, tensors in pairs for name, tensor in tensors.items()}
    g = weights.get("image.fc.weight_g")
    return weights if g is None or g.shape != (1,) else {**weights, "image.fc.weight_g": g.reshape(())}


def has_region_and_word_towers(released: ReleasedFile) -> bool:
    """Return whether the file holds two towers, a linear map of regions and a GRU over words (SCAN, BFAN)."""
    if len(released.towers) != 2:
        return False
    first, second = released.towers
    return all(name.startswith("fc.") for name in first) and any(name.startswith("rnn.") for name in second)


def read_towers(weights: Mapping[str, Tensor], options: Mapping[str, Any], rnn: str) -> dict[str, Any]:
    """Return the options of the two towers that all three families share, by the name of the encoder's.

    Raises InputError for options that contradict the tensors.

    Args:
        weights: as prefixed_weights returns them.
        options: of the file.
        rnn: name of the GRU, `text.rnn`.
    """
    dim, width = _region_matrix(weights)
    words = matrix_shape(weights, "text.embed.weight")[1]
    layers = count_layers(weights, rnn)
    sizes = {"embed_size": dim, "img_dim": width, "word_dim": words, "num_layers": layers}
    require_agreement(options, {**sizes, "bi_gru": is_bidirectional(weights, rnn)})
    return {
        "dim": dim,
        "words": words,
        "layers": layers,
        "no_imgnorm": read_flag(options, "no_imgnorm", False),
        "no_txtnorm": read_flag(options, "no_txtnorm", False),
    }


def read_weight_norm(weights: Mapping[str, Tensor], options: Mapping[str, Any]) -> bool:
    """Return whether the map of regions is g V / |V|. Raises InputError when `precomp_enc_type` says otherwise."""
    weight_norm = has_weight_norm(weights)
    require_agreement(options, {"precomp_enc_type": "weight_norm" if weight_norm else "basic"})
    return weight_norm


def has_weight_norm(weights: Mapping[str, Tensor]) -> bool:
    """Return whether the tensors are those of a map of regions g V / |V|."""
    return "image.fc.weight_v" in weights


def is_bidirectional(weights: Mapping[str, Tensor], rnn: str) -> bool:
    """Return whether a GRU of that name reads in both directions."""
    return f"{rnn}.weight_ih_l0_reverse" in weights


def region_width(weights: Mapping[str, Tensor]) -> int:
    """Return the width of a region's features."""
    return _region_matrix(weights)[1]


def _region_matrix(weights: Mapping[str, Tensor]) -> tuple[int, int]:
    """Return the rows and columns of the map of regions."""
    return matrix_shape(weights, "image.fc.weight_v" if has_weight_norm(weights) else "image.fc.weight")


def matrix_shape(weights: Mapping[str, Tensor], name: str) -> tuple[int, int]:
    """Return the rows and columns of a matrix in the file. Raises InputError when it is missing, no matrix or empty."""
    rows, columns = require_tensor(weights, name, 2).shape
    if not rows or not columns:
        raise InputError(f"{name} of the file must not be empty; got {rows} x {columns}")
    return rows, columns


def translate_option(options: Mapping[str, Any], name: str, meanings: Mapping[str, _T], default: str) -> _T:
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
    """Return the opened file, whose captions are made lower case as bytes, which changes A to Z only.

    Raises InputError for the first name or shape that differs from the model's.
    """
    vocabulary_size = matrix_shape(weights, "text.embed.weight")[0]
    fitted = fit_weights(spec, item_shape, vocabulary_size, weights)
    objective = triplet_spec(options)
    return OpenedModel(
        spec, fitted, item_shape, vocabulary_size, objective, notices=tuple(notices), word_tokeniser="treebank-ascii"
    )
