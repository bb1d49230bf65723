"""What an encoder is: two towers that turn a batch into EncodedBatches, and a score between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, cosine
from lossscope.errors import InputError, SpecError
from lossscope.registry import build

from .layers.chunked_scores import score_in_chunks
from .layers.state_dict import require_finite as require_finite
from .layers.state_dict import require_fit as require_fit
from .released.option_table import OptionTable
from .types import EncodedBatch, Items, ItemShape

if TYPE_CHECKING:
    from lossscope.text.tokenizer import Tokeniser

    from .types import OpenedModel, ReleasedFile


FORMER_NAMES = {
    "decays": "uses_weight_decay",
    "dot": "is_dot_product",
    "groups": "parameter_groups",
    "pairs_at_once": "pairs_per_chunk",
    "whole": "needs_full_matrix",
}
"""Former name of an attribute of Encoder -> its name; an encoder with a former one is refused."""


class Encoder(nn.Module):
    """Two towers and a score. One that defines or sets an attribute of FORMER_NAMES raises SpecError."""

    is_cosine: bool = True  # whether the score is a cosine
    score_min: float = -1.0  # least possible score
    score_max: float = 1.0  # greatest possible score
    pairwise: bool = False  # whether S comes from pairs of local features (score_pairs), not from one vector per item
    pairs_per_chunk: int = 2048  # pairs that a pairwise score computes at a time
    needs_full_matrix: bool = False  # whether a score depends on the other items (re-ranking): S cannot be tiled

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__:
            for name in sorted(FORMER_NAMES.keys() & vars(base).keys()):
                raise _former_name(cls, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FORMER_NAMES and not isinstance(value, nn.Module):  # a layer may have any name
            raise _former_name(type(self), name)
        super().__setattr__(name, value)

    @property
    def is_dot_product(self) -> bool:
        """Whether S = V T' of the global vectors, so that these vectors determine S."""
        return not self.pairwise

    def encode_images(self, images: Items) -> EncodedBatch:
        """Encode images: (n, 3, H, W) uint8 pixels, (n, d) or (n, R, d) float features, or several tensors by name."""
        raise NotImplementedError

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        """Encode captions: (n, L) padded token ids or (n, L, d) word vectors, and (n,) lengths on the CPU."""
        raise NotImplementedError

    def score(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor | Pair[Tensor]:
        """Return S with images as rows, (n, m), or where the directions differ a Pair, each with its queries as rows.

        NaN marks a pair that was not scored. A pairwise score and its gradient are computed in chunks of captions
        (score_in_chunks).
        """
        if self.pairwise:
            return score_in_chunks(self.score_pairs, images, texts, self.pairs_per_chunk)
        return cosine(images.vectors, texts.vectors)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """Return S of some images and a few captions, (n, m): the method that a pairwise encoder defines.

        `texts.mask` is None where no caption has padding.
        """
        raise NotImplementedError

    def extra_loss(
        self, images: EncodedBatch, texts: EncodedBatch, S: Tensor, mask: Mask, ids: Tensor, lengths: Tensor
    ) -> Tensor | None:
        """Return a further training loss of the model itself, (), which is added to the objective's; None for most.

        Args:
            images: the encoded images of the batch.
            texts: the encoded captions of the batch.
            S: their scores.
            mask: of S, direction i2t.
            ids: as given to encode_texts.
            lengths: as given to encode_texts.
        """
        return None

    def uses_weight_decay(self, name: str) -> bool:
        """Return whether weight decay applies to the parameter of that name."""
        return True

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        """Return groups of parameters that a recipe may give their own learning rate, by name (`bert`, `backbone`)."""
        return {}


def _former_name(cls: type, name: str) -> SpecError:
    return SpecError(f"{cls.__name__} must define {FORMER_NAMES[name]}; it defines {name}, its former name")


class EncoderSpec:
    """Base class of the public frozen dataclass of an encoder file, whose fields are the encoder's options."""

    released_options: ClassVar[OptionTable] = OptionTable()
    """What becomes of each option in the files that from_released opens; one in no list is refused."""
    takes_texts: ClassVar[bool] = False
    """Whether the items of the first side are texts too: `ids` (n, L) and `lengths` (n,) of the shape TEXT_SHAPE."""
    floors_median_rank: ClassVar[bool] = True
    """Whether the authors round the median rank down."""

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a newly initialised encoder for items of that shape. Raises InputError when they do not fit."""
        raise NotImplementedError

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        """Return the tokeniser; by default a vocabulary of the words seen at least min_count times in the captions."""
        from lossscope.text.vocabulary import Vocabulary

        return Vocabulary.build(captions, min_count)

    @property
    def reads_word_vectors(self) -> bool:
        """Whether it reads word vectors of the data set, and so needs no vocabulary."""
        return False

    def prepare(self, tokeniser: Tokeniser) -> Tokeniser:
        """Return the vocabulary or tokeniser of a released file in the form in which this model reads captions."""
        return tokeniser

    def stored_files(self) -> Mapping[str, str]:
        """Return what a checkpoint stores of the spec's files (a configuration, by name), so that it needs no files."""
        return {}

    def reading(self) -> Mapping[str, str]:
        """Return how the model's own files say that pictures are read: fields of data sets (fit, ...); {} for most."""
        return {}

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        """Return the model into which a checkpoint's weights are loaded; reads none of the spec's files.

        Args:
            item_shape: shape of one item.
            vocabulary_size: number of ids.
            stored_files: what `stored_files` returned when the checkpoint was written.
        """
        return self.build(item_shape, vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Return the encoder and weights in a file of the family's authors, or None when the file is of another family.

        Raises InputError when it is of this family, but damaged or of a kind that cannot be opened.
        """
        return None


def encoder_spec(spec: str) -> EncoderSpec:
    """Return the options that a spec describes. Raises InputError for a plug-in class that is no EncoderSpec."""
    options = build(spec=spec, kind="encoders")
    if not isinstance(options, EncoderSpec):
        raise InputError(f"{spec} must inherit lossscope.encoders.base.EncoderSpec; {type(options).__name__} does not")
    return options
