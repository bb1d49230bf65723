"""What an encoder is: two towers that turn a batch into a Side, and a score between two Sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from ..errors import InputError
from ..similarity import cosine


@dataclass(frozen=True)
class Side:
    """One side of a batch after encoding.

    global_: (n, d) one vector per item, or None. local: (n, L, d) regions or words, or None; mask: (n, L) bool of
    those present. extra: further tensors with n rows.
    """

    global_: Tensor | None
    local: Tensor | None = None
    mask: Tensor | None = None
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def vectors(self) -> Tensor:
        """The global vectors. Raises ValueError for an encoder that scores pairs directly."""
        if self.global_ is None:
            raise ValueError("this encoder has no global embedding; its similarities come from score()")
        return self.global_


class Encoder(nn.Module):
    """Two towers. is_cosine: whether the score is a cosine; score_min and score_max: its range."""

    is_cosine: bool = True
    score_min: float = -1.0
    score_max: float = 1.0

    def encode_images(self, images: Tensor) -> Side:
        """(n, 3, H, W) uint8 pixels or (n, d) / (n, R, d) float features -> Side."""
        raise NotImplementedError

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> Side:
        """(n, L) padded token ids and (n,) lengths -> Side."""
        raise NotImplementedError

    def score(self, images: Side, texts: Side) -> Tensor:
        """S, always with image rows: (n, m); NaN would mean unscored."""
        return cosine(images.vectors, texts.vectors)


@runtime_checkable
class EncoderSpec(Protocol):
    """The frozen dataclass of an encoder file: its options, and how to make the model from them."""

    def build(self, item_shape: tuple[int, ...], vocabulary_size: int) -> Encoder:
        """A freshly initialised encoder for items of that shape. Raises InputError when they do not fit."""


def require_fit(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor], whose: str) -> None:
    """Raise InputError unless `found` has just the names and shapes of `wanted`, telling the first that differ."""
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    if missing or extra:
        raise InputError(
            f"weights must be those of {whose}, no more and no fewer; missing {missing[:3]} ({len(missing)}), "
            f"left over {extra[:3]} ({len(extra)})"
        )
    for name, tensor in wanted.items():
        if tensor.shape != found[name].shape:
            raise InputError(f"{name} must be {tuple(tensor.shape)}; got {tuple(found[name].shape)}")
