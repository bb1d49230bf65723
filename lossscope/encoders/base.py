"""What an encoder is: two towers that turn a batch into Sides, and a score between two Sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, cosine
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.text.tokenizer import Tokens
from lossscope.text.vocabulary import Vocabulary

from .layers.chunked_scores import two_pass
from .layers.state_dict import require_finite as require_finite
from .layers.state_dict import require_fit as require_fit
from .types import EncodedBatch, Items, Shape

if TYPE_CHECKING:
    from .types import OpenedModel, ReleasedFile


class Encoder(nn.Module):
    """Two towers and a score.

    is_cosine: whether the score is a cosine; score_min, score_max: its range. pairwise: S comes from pairs of local
    features (score_pairs), not from one vector per item. pairs_at_once: pairs of one chunk of such a score. whole:
    whether a score depends on which other items are there (a re-ranking of the best), so that it can not be tiled.
    """

    is_cosine: bool = True
    score_min: float = -1.0
    score_max: float = 1.0
    pairwise: bool = False
    pairs_at_once: int = 2048
    whole: bool = False

    @property
    def dot(self) -> bool:
        """Whether S = V T' of the global vectors, so that vectors say all there is."""
        return not self.pairwise

    def encode_images(self, images: Items) -> EncodedBatch:
        """(n, 3, H, W) uint8 pixels, (n, d) or (n, R, d) float features, or several such tensors by name -> Side."""
        raise NotImplementedError

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        """(n, L) padded token ids, or (n, L, d) vectors of words, and (n,) lengths on the CPU -> Side."""
        raise NotImplementedError

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor | Pair[Tensor]:
        """S, always with image rows: (n, m); a Pair, each with its queries as rows, where the directions differ.

        NaN means that a pair was not scored. A pairwise score is computed a chunk of captions at a time, and so is
        its gradient (two_pass).
        """
        if self.pairwise:
            return two_pass(self.score_pairs, images, texts, self.pairs_at_once)
        return cosine(images.vectors, texts.vectors)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """S of some images with a few captions, (n, m): what a pairwise encoder writes. texts.mask None: no padding."""
        raise NotImplementedError

    def extra_loss(
        self, images: EncodedBatch, texts: EncodedBatch, S: Tensor, mask: Mask, ids: Tensor, lengths: Tensor
    ) -> Tensor | None:
        """A further training loss of the model itself, (), added to the objective's as it is; None for most.

        S and mask (i2t) are of the batch, ids and lengths what encode_texts was given.
        """
        return None

    def decays(self, name: str) -> bool:
        """Whether weight decay is for the parameter of that name."""
        return True

    def groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        """Parameters that a recipe may give a rate of their own, by name (`bert`, `backbone`); the rest is unnamed."""
        return {}


class EncoderSpec:
    """What the public frozen dataclass of an encoder file inherits: its fields are the encoder's options."""

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A freshly initialised encoder for items of that shape. Raises InputError when they do not fit."""
        raise NotImplementedError

    def tokens(self, captions: Sequence[str], min_count: int) -> Tokens:
        """How it reads captions: words of the training captions seen min_count times, unless it says otherwise."""
        return Vocabulary.build(captions, min_count)

    @property
    def wordless(self) -> bool:
        """Whether it reads vectors of words that the data set holds, so that it has no use for a vocabulary."""
        return False

    def prepare(self, words: Tokens) -> Tokens:
        """A vocabulary or tokeniser of an original's file, as this model reads captions with it."""
        return words

    def kept(self) -> Mapping[str, str]:
        """What of its files (a configuration) a checkpoint must hold so that the model can be rebuilt without them."""
        return {}

    def rebuild(self, item_shape: Shape, vocabulary_size: int, kept: Mapping[str, str]) -> Encoder:
        """The model to load a checkpoint's weights into, from what `kept` told; reads none of the spec's files."""
        return self.build(item_shape, vocabulary_size)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """The encoder and weights in an original file of the family's authors, or None when it is none of theirs.

        Raises InputError when it is one, but damaged or of a kind that can not be opened.
        """
        return None


def encoder_spec(spec: str) -> EncoderSpec:
    """The options that a spec describes. Raises InputError for a user's own class that is no EncoderSpec."""
    found = build(spec=spec, kind="encoders")
    if not isinstance(found, EncoderSpec):
        raise InputError(f"{spec} must inherit lossscope.encoders.base.EncoderSpec; {type(found).__name__} does not")
    return found
