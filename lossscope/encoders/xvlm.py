"""X-VLM: a Swin and a BERT compared as unit vectors, and fused layers that score a picture and a caption together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from lossscope.errors import InputError
from lossscope.text.special_tokens import split_special_tokens
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokeniser
from lossscope.text.xvlm_captions import add_cleaning, clean_captions

from ._xvlm_model import ModelOptions, XvlmModel
from .base import Encoder, EncoderSpec, require_fit
from .layers.cross_encoder import HEAD_WIDTH, CrossEncoderConfig
from .layers.swin import HEAD_WIDTH as SWIN_HEAD
from .layers.swin import SwinConfig
from .released.checkpoint_file import read_released
from .released.known_options.xvlm import OPTIONS
from .released.option_table import OptionTable
from .released.options import fit_weights, read_count, require_agreement
from .released.xvlm import infer_image_size, infer_sizes, is_xvlm, resize_bias_tables, select_weights
from .types import ItemShape, OpenedModel, ReleasedFile


@dataclass(frozen=True)
class XVLM(EncoderSpec):
    """v = norm(W_v mean(Swin(image))), t = norm(W_t [CLS]); itc: S = v · t; itm: S = logit of a match, fused [CLS].

    score=itm: training scores all pairs of a batch; eval scores each query's k_test best by v · t and leaves the rest
    unscored, so that the two directions differ. The original fills in −100 and ranks these by their place: below
    k_test=10 its R@10 counts them, where here a positive that is not scored has the last rank.

    itm_loss=true adds itm_weight times the two-class loss of B positive pairs and 2 B hard negatives, drawn at `temp`
    among what is neither positive nor masked (same-image=mask excludes captions of the same picture, as the original
    does). The original with g GPUs divides the gradient of v · t by g, but not that of this loss: itm_weight=g. With
    score=itm the objective does not see v · t; itc_loss=true adds its cross-entropy at `temp` over the batch as a loss
    of the model. Parameters that no loss reaches are not trained. temp is stored but not trained: infonce learns the
    temperature.

    The Swin has heads of width 32, the BERT of 64. Small widths learn far sooner from init=0.08 than from the
    original's 0.02. The original also changes colours and angles of pictures (RandAugment), and applies max_tokens in
    eval only. Bias tables of `weights` are resized where the window differs.

    Source: Zeng et al. 2022.
    """

    released_options: ClassVar[OptionTable] = OPTIONS

    score: Literal["itc", "itm"] = "itc"  # cosine of the two vectors, or logit of a match
    k_test: int = 128  # candidates of a query that itm scores in eval
    itm_loss: bool = False  # add the matching loss
    itm_weight: float = 1.0  # factor of the matching loss
    itc_loss: bool = True  # with score=itm, add the contrastive loss
    embed: int = 128  # width of the Swin's first stage, a multiple of 32
    depths: str = "2/2/18/2"  # blocks of each stage of the Swin
    window: int = 12  # tokens of the side of the Swin's windows
    patch: int = 4  # pixels of a patch's side
    drop_path: float = 0.1  # share of the Swin's last residual branches dropped in training
    width: int = 768  # of the BERT's states, a multiple of 64
    layers: int = 12  # of the BERT, fused ones included
    fused: int = 6  # last layers of the BERT that attend to the picture
    positions: int = 512  # longest text of the BERT
    dropout: float = 0.1  # of the BERT
    init: float = 0.02  # standard deviation of new weights
    dim: int = 256  # width of v and t
    augment: bool = False  # in training crop a random half or more of the picture, flipped half the time
    weights: Path | None = None  # file of the authors to begin with
    tokeniser: Path | None = None  # folder of bert-base-uncased's tokeniser; none learns one from the captions
    pieces: int = 8000  # size of the tokeniser that is learnt
    max_words: int = 30  # clean captions and cut them to this number of words; 0 leaves them as they are
    max_tokens: int = 40  # then cut them to this number of ids
    sep: bool = True  # end a caption with [SEP]; the original's tokeniser leaves it out

    def __post_init__(self) -> None:
        least = min(self.k_test, self.window, self.patch, self.embed, self.width, self.dim, self.pieces, self.fused)
        if least < 1 or self.max_words < 0 or self.itm_weight < 0:
            raise InputError("sizes and k_test must be at least 1, max_words and itm_weight at least 0")
        if self.embed % SWIN_HEAD or self.width % HEAD_WIDTH:
            got = f"{self.embed} and {self.width}"
            raise InputError(f"embed must be a multiple of {SWIN_HEAD} and width of {HEAD_WIDTH}; got {got}")
        if not self.fused < self.layers:
            raise InputError(f"fused must be below layers, {self.layers}; got {self.fused}")
        if not 3 <= self.max_tokens <= self.positions:
            raise InputError(f"max_tokens must be in 3..{self.positions} (positions); got {self.max_tokens}")
        if not self.init > 0:
            raise InputError(f"init must be > 0; got {self.init}")
        if not (0 <= self.dropout < 1 and 0 <= self.drop_path < 1):
            raise InputError(f"dropout and drop_path must be in [0, 1); got {self.dropout} and {self.drop_path}")
        _ = self.swin_config

    @property
    def swin_config(self) -> SwinConfig:
        """Sizes of the image tower. Raises InputError when depths are not numbers of blocks with `/` between them."""
        depths = self.depths.split("/")
        if not all(depth.isascii() and depth.isdigit() and int(depth) for depth in depths):
            raise InputError(f"depths must be whole numbers from 1, as 2/2/18/2; got {self.depths!r}")
        return SwinConfig(self.embed, tuple(map(int, depths)), self.window, self.patch, self.drop_path, self.init)

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        """Return the tokeniser of the folder, or one learnt from cleaned captions."""
        if self.tokeniser is not None:
            return self.prepare(Subwords.from_folder(self.tokeniser))
        return self.prepare(Subwords.train(clean_captions(captions, self.max_words), self.pieces))

    def prepare(self, tokeniser: Tokeniser) -> Tokeniser:
        """Return a tokeniser of parts of words as this model reads captions. Raises InputError for a vocabulary."""
        if not isinstance(tokeniser, Subwords):
            raise InputError("xvlm must be given the tokeniser of BERT; got a vocabulary of words")
        length = min(tokeniser.max_length or self.max_tokens, self.max_tokens)
        parts = split_special_tokens(replace(tokeniser, max_length=length))
        return add_cleaning(parts, self.max_words, self.sep)

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model, with the file's weights. Raises InputError for other items than square pictures."""
        model = self.rebuild(item_shape, vocabulary_size, {})
        if self.weights is not None:
            released = read_released(self.weights)
            if not is_xvlm(released):
                raise InputError(f"weights must be a file of X-VLM's authors; {self.weights} is none")
            weights = resize_bias_tables(select_weights(released)[0], model.state_dict())
            require_fit(model.state_dict(), weights, f"xvlm at these sizes, which {self.weights} is to fill")
            model.load_state_dict(weights)
        return model

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        if not isinstance(item_shape, tuple) or len(item_shape) != 3 or item_shape != (3, item_shape[1], item_shape[1]):
            raise InputError(f"xvlm must be given square pictures, (3, s, s); the data set has items of {item_shape}")
        sizes = (self.width, self.layers, self.fused, self.positions)
        text_config = CrossEncoderConfig(vocabulary_size, self.swin_config.out, *sizes, self.dropout, self.init)
        options = ModelOptions(
            self.score, self.k_test, self.itm_weight if self.itm_loss else 0.0, self.itc_loss, self.augment
        )
        return XvlmModel(self.swin_config, item_shape[1], text_config, self.dim, options)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of Zeng et al. with a Swin: a text encoder with cross attention beside a `vision_encoder`."""
        if not is_xvlm(released):
            return None
        weights, ignored = select_weights(released)
        defaults = {"k_test": 128, "max_tokens": 40}
        options: dict[str, Any] = {
            name: read_count(released.options, name, default) for name, default in defaults.items()
        }
        spec = cls(itm_loss=True, sep=False, **infer_sizes(weights), **options)
        side = infer_image_size(released, spec.patch, len(spec.swin_config.depths), spec.window)
        size = len(weights["text_encoder.embeddings.word_embeddings.weight"])
        fitted = fit_weights(spec, (3, side, side), size, weights)
        require_agreement(released.options, {"embed_dim": spec.dim})
        tau = float(fitted["temp"])
        if not tau > 0:
            raise InputError(f"temp of the file must be > 0; got {tau}")
        return OpenedModel(
            spec, fitted, (3, side, side), size, f"infonce:tau={tau:.9g},learn=false",
            ignored=ignored, context_length=spec.max_tokens,
            notices=("S is the cosine of the two vectors; score=itm re-ranks the best",),
            reading={"fit": "squeeze", "resample": "bicubic", "size": str(side)},
        )  # fmt: skip
