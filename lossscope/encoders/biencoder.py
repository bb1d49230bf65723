"""A bi-encoder of two texts, such as queries and documents, compared as unit vectors in one space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.core.types import TEXT_SHAPE
from lossscope.errors import InputError

from .base import Encoder, EncoderSpec
from .layers.text_transformer import TextTransformer
from .layers.vse_towers import GruTower
from .types import EncodedBatch, Items, ItemShape


@dataclass(frozen=True)
class BiEncoder(EncoderSpec):
    """q = norm(tower(words of the query)), d = norm(tower(words of the document)), S = q · d.

    Both sides share one tower unless share=false. `gru` is its state at the last word; `transformer` the mean over the
    words of a small one. Both train from scratch on a CPU.
    Source: Reimers & Gurevych 2019 (one tower for both); Karpukhin et al. 2020 (two).
    """

    tower: Literal["gru", "transformer"] = "gru"  # of a text
    dim: int = 128  # width of a vector
    words: int = 128  # width of a word vector; of a transformer that of its layers
    layers: int = 1  # of the tower
    heads: int = 4  # of a transformer's attention
    share: bool = True  # one tower for both sides

    takes_texts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        sizes = (self.dim, self.words, self.layers, self.heads)
        if min(sizes) < 1:
            raise InputError(f"dim, words, layers and heads must be at least 1; got {', '.join(map(str, sizes))}")
        if self.tower == "transformer" and self.words % (2 * self.heads):
            raise InputError(
                f"words must be a multiple of twice the heads of a transformer; got {self.words} and {self.heads}"
            )

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model. Raises InputError for items that are no texts."""
        if item_shape != TEXT_SHAPE:
            raise InputError(
                f"items must be texts for biencoder, as data sets of queries and documents have; got {item_shape}. "
                "Take an encoder of images, such as vsepp"
            )
        text = self._tower(vocabulary_size)
        return _Towers(text if self.share else self._tower(vocabulary_size), text)

    def _tower(self, vocabulary_size: int) -> nn.Module:
        if self.tower == "gru":
            return GruTower(vocabulary_size, self.words, self.dim, 1.0, self.layers)
        return TextTransformer(vocabulary_size, self.words, self.dim, self.layers, self.heads)


class _Towers(Encoder):
    """Two texts towers, which may be one."""

    def __init__(self, first: nn.Module, text: nn.Module) -> None:
        super().__init__()
        self.text = text
        if first is not text:
            self.first = first

    def encode_images(self, images: Items) -> EncodedBatch:
        """Encode texts of the first side: `ids` (n, L), padded, and `lengths` (n,)."""
        assert not isinstance(images, Tensor), "texts of the first side are ids and lengths"
        tower = self.first if "first" in self._modules else self.text
        return EncodedBatch(normalise(tower(images["ids"], images["lengths"].cpu()).float()))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return EncodedBatch(normalise(self.text(ids, lengths).float()))
