"""X-VLM: a Swin and a BERT that meet as unit vectors, and fused layers that judge a picture and a caption together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lossscope.errors import InputError
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokens
from lossscope.text.xvlm_captions import cleaned_all, cleaning

from ._xvlm_model import How, Model
from .base import Encoder, EncoderSpec, require_fit
from .layers.cross_encoder import HEAD, BodyPlan
from .layers.swin import HEAD as SWIN_HEAD
from .layers.swin import SwinPlan
from .released.checkpoint_file import read_released
from .released.options import fitted
from .released.xvlm import is_xvlm, pixels_of, resized, sizes, weights_of, whole
from .types import OpenedModel, ReleasedFile, Shape


@dataclass(frozen=True)
class XVLM(EncoderSpec):
    """v = norm(W_v mean(Swin(image))), t = norm(W_t [CLS]); itc: S = v · t; itm: S = logit of a match, fused [CLS].

    score: `itc`, cosines; or `itm`. Training that, every pair of a batch is scored; in eval each query's k_test best
    by v · t are, and the rest is left unscored, so that the two directions differ (the original fills in −100).
    itm_loss: with `itm_weight` times the two-class loss of B positive pairs and 2 B hard negatives, drawn at `temp` of
    what is neither positive nor masked (same-image=mask leaves out captions of the same picture, as the original
    does). The original with g GPUs divides the gradient of v · t by g, but not this one's: itm_weight=g.
    itc_loss: for score=itm, whose objective does not see v · t: its cross-entropy at `temp` over the batch as a loss
    of the model. A part that no loss reaches is not trained. temp is carried along: infonce learns the temperature.
    embed, depths, window, patch: of the Swin, heads of 32. width, layers, fused (the last ones): of the BERT, heads
    of 64; positions: its longest text. init: deviation of what both begin with; small widths learn far sooner from 0.08
    than from the original's. dim: joint width. augment: in training a random half or more of the picture,
    mirrored half the time; the original also changes its colours and angles (RandAugment).
    weights: file of the authors to begin with; tables for another window are stretched. tokeniser: folder of that of
    bert-base-uncased; without it one of `pieces` parts of words is made from the captions. max_words: captions are
    cleaned and cut to so many words (0: as they are); max_tokens: then to so many ids, the original's only in eval.
    sep: [SEP] ends a caption; the original's tokeniser leaves it out. Source: Zeng et al. 2022.
    """

    score: Literal["itc", "itm"] = "itc"
    k_test: int = 128
    itm_loss: bool = False
    itm_weight: float = 1.0
    itc_loss: bool = True
    embed: int = 128
    depths: str = "2/2/18/2"
    window: int = 12
    patch: int = 4
    drop_path: float = 0.1
    width: int = 768
    layers: int = 12
    fused: int = 6
    positions: int = 512
    dropout: float = 0.1
    init: float = 0.02
    dim: int = 256
    augment: bool = False
    weights: Path | None = None
    tokeniser: Path | None = None
    pieces: int = 8000
    max_words: int = 30
    max_tokens: int = 40
    sep: bool = True

    def __post_init__(self) -> None:
        least = min(self.k_test, self.window, self.patch, self.embed, self.width, self.dim, self.pieces, self.fused)
        if least < 1 or self.max_words < 0 or self.itm_weight < 0:
            raise InputError("sizes and k_test must be at least 1, max_words and itm_weight at least 0")
        if self.embed % SWIN_HEAD or self.width % HEAD:
            got = f"{self.embed} and {self.width}"
            raise InputError(f"embed must be a multiple of {SWIN_HEAD} and width of {HEAD}; got {got}")
        if not self.fused < self.layers:
            raise InputError(f"fused must be below layers, {self.layers}; got {self.fused}")
        if not 3 <= self.max_tokens <= self.positions:
            raise InputError(f"max_tokens must be in 3..{self.positions} (positions); got {self.max_tokens}")
        if not self.init > 0:
            raise InputError(f"init must be > 0; got {self.init}")
        if not (0 <= self.dropout < 1 and 0 <= self.drop_path < 1):
            raise InputError(f"dropout and drop_path must be in [0, 1); got {self.dropout} and {self.drop_path}")
        _ = self.plan

    @property
    def plan(self) -> SwinPlan:
        """Sizes of the image tower. Raises InputError when depths are not numbers of blocks with `/` between them."""
        depths = self.depths.split("/")
        if not all(depth.isascii() and depth.isdigit() and int(depth) for depth in depths):
            raise InputError(f"depths must be whole numbers from 1, as 2/2/18/2; got {self.depths!r}")
        return SwinPlan(self.embed, tuple(map(int, depths)), self.window, self.patch, self.drop_path, self.init)

    def tokens(self, captions: Sequence[str], min_count: int) -> Tokens:
        """The tokeniser of the folder, or one learnt from cleaned captions."""
        if self.tokeniser is not None:
            return self.prepare(Subwords.from_folder(self.tokeniser))
        return self.prepare(Subwords.train(cleaned_all(captions, self.max_words), self.pieces))

    def prepare(self, words: Tokens) -> Tokens:
        """A tokeniser of parts of words as this model reads captions with it. Raises InputError for a vocabulary."""
        if not isinstance(words, Subwords):
            raise InputError("xvlm must be given the tokeniser of BERT; got a vocabulary of words")
        most = min(words.max_length or self.max_tokens, self.max_tokens)
        return cleaning(replace(words, max_length=most), self.max_words, self.sep)

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model, with the file's weights. Raises InputError for other items than square pictures."""
        model = self.rebuild(item_shape, vocabulary_size, {})
        if self.weights is not None:
            original = read_released(self.weights)
            if not is_xvlm(original):
                raise InputError(f"weights must be a file of X-VLM's authors; {self.weights} is none")
            found = resized(weights_of(original)[0], model.state_dict())
            require_fit(model.state_dict(), found, f"xvlm at these sizes, which {self.weights} is to fill")
            model.load_state_dict(found)
        return model

    def rebuild(self, item_shape: Shape, vocabulary_size: int, kept: Mapping[str, str]) -> Encoder:
        if not isinstance(item_shape, tuple) or len(item_shape) != 3 or item_shape != (3, item_shape[1], item_shape[1]):
            raise InputError(f"xvlm must be given square pictures, (3, s, s); the data set has items of {item_shape}")
        counts = (self.width, self.layers, self.fused, self.positions)
        body = BodyPlan(vocabulary_size, self.plan.out, *counts, self.dropout, self.init)
        how = How(self.score, self.k_test, self.itm_weight if self.itm_loss else 0.0, self.itc_loss, self.augment)
        return Model(self.plan, item_shape[1], body, self.dim, how)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file of Zeng et al. with a Swin: a text body with cross attention beside a `vision_encoder`."""
        if not is_xvlm(original):
            return None
        weights, ignored = weights_of(original)
        told = {"k_test": 128, "max_words": 30, "max_tokens": 40}
        options: dict[str, Any] = {name: whole(original.options, name, absent) for name, absent in told.items()}
        spec = cls(itm_loss=True, sep=False, **sizes(weights), **options)
        side = pixels_of(original, spec.patch, len(spec.plan.depths), spec.window)
        size = len(weights["text_encoder.embeddings.word_embeddings.weight"])
        found = fitted(spec, (3, side, side), size, weights)
        tau = float(found["temp"])
        if not tau > 0:
            raise InputError(f"temp of the file must be > 0; got {tau}")
        return OpenedModel(
            spec, found, (3, side, side), size, f"infonce:tau={tau:.9g},learn=false",
            ignored=ignored, context=spec.max_tokens,
            notices=(f"pictures: the whole picture squeezed to {side} x {side}",
                     "S is the cosine of the two vectors; with score=itm the best are re-ranked"),
        )  # fmt: skip
