"""VSE-infinity: regions or grid cells, and words, each set pooled to one vector by a learnt operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.text.special_tokens import split_special_tokens
from lossscope.text.subwords import SPECIAL, Subwords
from lossscope.text.tokenizer import Tokeniser
from lossscope.text.vocabulary import Vocabulary

from .base import Encoder, EncoderSpec
from .layers.bert import bert_configuration, build_bert, parse_size, stored_configuration
from .layers.grid_backbone import Backbone
from .layers.pooled_regions import PooledGrid, PooledRegions
from .layers.pooled_resnet import require_weights
from .layers.pooled_words import MaskingIds, PooledBertWords, PooledGruWords
from .layers.scan_towers import unit
from .released.bert_folder import load_bert_folder
from .released.known_options.vse_infty import OPTIONS
from .released.option_table import OptionTable
from .released.vse_infty import open_vse_infty
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

_Backbones = Literal[
    "detector", "resnet50", "resnet101", "resnet152", "resnext101", "resnet50_caffe", "resnet101_caffe",
    "resnet152_caffe",
]  # fmt: skip


@dataclass(frozen=True)
class VSEInfty(EncoderSpec):
    """v = norm(GPO(fc(f) + MLP(f))) over regions f, t = norm(GPO(linear(BERT(words)))), S = v · t.

    image=regions reads items (R, d). image=grid reads pixels (3, H, W) through `backbone`, without the MLP; `weights`
    names the backbone's file, which a new model must have (Instagram's and ImageNet's ResNeXt-101 32x8d are both
    resnext101). detector and the names with _caffe stride in the first convolution of a block and pool without padding,
    as the original does in all networks but ResNeXt; the other names are torchvision's networks. text=bigru is a
    bidirectional GRU, whose vocabulary ends with `<mask>`. bert=base has the size of bert-base-uncased without its
    weights, small has 4 layers of width 256.

    In training each region is left out with probability `drop`, each grid cell with less, and each word is masked,
    replaced or deleted (size_augmentation.py). Words of several parts are changed together, but not with bert=small, of
    whose tokeniser the model knows only the mask.

    The original's batch norm of the MLP sees the zeros behind regions that were left out (bn_ignore_padding=false). A
    second batch norm, which the original never applies, exists for its name.

    Source: Chen et al. 2021; Lee et al. 2018 for the loss.
    """

    released_options: ClassVar[OptionTable] = OPTIONS

    image: Literal["regions", "grid"] = "regions"  # kind of items
    text: Literal["bert", "bigru"] = "bert"  # encoder of words
    dim: int = 1024  # joint width
    words: int = 300  # width of a word vector of bigru
    word_init: float = 0.1  # word vectors of bigru start uniform in ±word_init
    bert: str = "base"  # base or small, LAYERSxWIDTH, or the Hugging Face folder of a BERT
    tokeniser: Path | None = None  # folder of BERT's tokeniser; not needed where bert is a folder or small
    pieces: int = 8000  # size of the tokeniser that bert=small learns
    backbone: _Backbones = "detector"  # network of image=grid
    weights: Path | None = None  # file of the backbone's weights
    drop: float = 0.2  # probability of size augmentation in training, 0 for none
    bn_ignore_padding: bool = True  # batch norm of the MLP ignores regions that were left out
    layers: int = 1  # number of GRUs of bigru, one over the states of the other
    no_imgnorm: bool = False  # do not scale v to unit length
    no_txtnorm: bool = False  # do not scale t to unit length

    def __post_init__(self) -> None:
        if self.dim < 2 or min(self.words, self.pieces, self.layers) < 1 or not self.word_init > 0:
            got = f"{self.dim}, {self.words}, {self.pieces}, {self.layers} and {self.word_init}"
            raise InputError(f"dim must be at least 2, words, pieces and layers at least 1, word_init > 0; got {got}")
        if not 0 <= self.drop < 1:
            raise InputError(f"drop must be in [0, 1); got {self.drop}")
        if self.weights is not None and self.image != "grid":
            raise InputError(f"weights are for the backbone of image=grid; got image={self.image}")
        parse_size(self.bert)

    def prepare(self, tokeniser: Tokeniser) -> Tokeniser:
        """Return a vocabulary with `<mask>` behind its words, for bigru; BERT's tokeniser as the original calls it."""
        if isinstance(tokeniser, Subwords):
            return split_special_tokens(tokeniser)
        return self._with_mask(tokeniser) if isinstance(tokeniser, Vocabulary) else tokeniser

    def build_tokeniser(self, captions: Sequence[str], min_count: int) -> Tokeniser:
        """Return words and `<mask>`, the tokeniser of a folder, or one learnt. Raises InputError without a folder."""
        if self.text == "bigru":
            return self._with_mask(Vocabulary.build(captions, min_count))
        return self._subwords() or Subwords.train(captions, self.pieces)

    def stored_files(self) -> Mapping[str, str]:
        if self.text == "bigru":
            return {}
        subwords = self._subwords() if self._tokeniser_folder else None
        files = {"tokeniser": subwords.to_json()} if subwords else {}
        configuration = stored_configuration(self.bert)
        return {**files, "bert": configuration} if configuration else files

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model, with the weights in its folder and file.

        Raises InputError when items do not fit, and for a grid without a file.
        """
        if self.image == "grid":
            require_weights(self.weights, f"backbone={self.backbone}, whose batch norms never train")
        model = self.rebuild(item_shape, vocabulary_size, self.stored_files(), self.weights)
        if self.text == "bert" and parse_size(self.bert) is None:
            load_bert_folder(model.get_submodule("text.bert"), Path(self.bert).expanduser())
        return model

    def rebuild(
        self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str], weights: Path | None = None
    ) -> Encoder:
        image = self._image_tower(item_shape, weights)
        if self.text == "bigru":
            words = PooledGruWords(vocabulary_size, self.words, self.dim, self.word_init, self.drop, self.layers)
            return _Towers(self, image, words)
        options = bert_configuration(self.bert, vocabulary_size, stored_files.get("bert"))
        width, size = int(options["hidden_size"]), int(options["vocab_size"])
        return _Towers(
            self,
            image,
            PooledBertWords(build_bert(options), width, size, self.dim, self.drop, self._masking_ids(stored_files)),
        )

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of Chen et al.: gpool in the first of two state dicts, with a BERT or a GRU in the second."""
        return open_vse_infty(cls, released)

    def _with_mask(self, words: Vocabulary) -> Vocabulary:
        return words if "<mask>" in words.ids else replace(words, words=(*words.words, "<mask>"))

    @property
    def _tokeniser_folder(self) -> Path | None:
        return self.tokeniser or (None if parse_size(self.bert) else Path(self.bert))

    def _subwords(self) -> Subwords | None:
        """Return the tokeniser of the folder; None when it is to be learnt. Raises InputError without a folder."""
        if self._tokeniser_folder is None and self.bert != "small":
            raise InputError(f"bert={self.bert} must come with its tokeniser: tokeniser=FOLDER; or take bert=small")
        return None if self._tokeniser_folder is None else Subwords.from_folder(self._tokeniser_folder)

    def _masking_ids(self, stored_files: Mapping[str, str]) -> MaskingIds | None:
        """Return the ids that masking words needs; None when the tokeniser is unknown."""
        if "tokeniser" not in stored_files:
            return MaskingIds(SPECIAL.index("[MASK]")) if self.bert == "small" else None
        subwords = Subwords.from_json(stored_files["tokeniser"])
        mask = subwords.id_of("[MASK]")
        if mask is None:
            raise InputError(f"the tokeniser of {self._tokeniser_folder} must have a [MASK] token; it has none")
        return MaskingIds(mask, subwords.continuing)

    def _image_tower(self, shape: ItemShape, weights: Path | None) -> nn.Module:
        if isinstance(shape, tuple) and self.image == "regions" and len(shape) == 2:
            return PooledRegions(shape[1], self.dim, self.drop, self.bn_ignore_padding)
        if isinstance(shape, tuple) and self.image == "grid" and len(shape) == 3 and shape[0] == 3:
            return PooledGrid(Backbone(self.backbone, weights), self.dim, self.drop)
        need = "regions, (R, d)" if self.image == "regions" else "pixels, (3, H, W)"
        raise InputError(f"image={self.image} must be given {need}; the data set has items of shape {shape}")


class _Towers(Encoder):
    def __init__(self, spec: VSEInfty, image: nn.Module, text: nn.Module) -> None:
        super().__init__()
        self.spec, self.image, self.text = spec, image, text
        self.is_cosine = not (spec.no_imgnorm or spec.no_txtnorm)
        if not self.is_cosine:
            self.score_min, self.score_max = -float("inf"), float("inf")

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        vectors: Tensor = self.image(images).float()
        return EncodedBatch(vectors if self.spec.no_imgnorm else unit(vectors))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        vectors: Tensor = self.text(ids, lengths).float()
        return EncodedBatch(vectors if self.spec.no_txtnorm else unit(vectors))

    def parameter_groups(self) -> Mapping[str, list[nn.Parameter]]:
        modules = {"bert": getattr(self.text, "bert", None), "backbone": getattr(self.image, "backbone", None)}
        return {name: list(module.parameters()) for name, module in modules.items() if module is not None}
