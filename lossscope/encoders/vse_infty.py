"""VSE-infinity: regions or grid cells, and words, each set pooled to one vector by a learnt operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.text.subwords import SPECIAL, Subwords
from lossscope.text.tokenizer import Tokens
from lossscope.text.vocabulary import Vocabulary

from .base import Encoder, EncoderSpec
from .layers.bert import HEAD, configuration, empty, kept_configuration, size_of
from .layers.grid_backbone import Backbone, name_of, one_of_both
from .layers.pooled_regions import Grids, Regions
from .layers.pooled_resnet import require_trained
from .layers.pooled_words import BertWords, GruWords, Marks
from .layers.scan_towers import unit
from .released import options as told
from .released.bert_folder import load_folder
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape

_REGIONS = 36  # of the authors' feature files; the model itself takes any number
_PIXELS = 256  # side of their pictures, times their option input_scale_factor
_Backbones = Literal["detector", "resnet50", "resnet101", "resnet152", "resnext101"]


@dataclass(frozen=True)
class VSEInfty(EncoderSpec):
    """v = norm(GPO(fc(f) + MLP(f))) over regions f, t = norm(GPO(linear(BERT(words)))), S = v · t.

    image: `regions`, items (R, d); or `grid`, pixels (3, H, W) through `backbone` (`weights` names its file, which a
    new model must have; Instagram's and ImageNet's ResNeXt-101 32x8d are both resnext101), without the MLP. text:
    `bert`, or `bigru` (bidirectional GRU; its vocabulary ends with `<mask>`). bert: `base` (the size of
    bert-base-uncased, without weights), `small` (4 layers of 256), `LAYERSxWIDTH`, or the Hugging Face folder of a
    BERT. tokeniser: its folder; not needed where bert is a folder that has one, nor for `small`, which learns one of
    at most `pieces` parts from the captions.
    dim: joint width. words: width of a word vector of bigru, uniform in ±word_init at first.
    drop: in training each region is left out with this probability, each grid cell with less, and each word is
    masked, replaced or deleted (perturbing.py); words of several parts go together, but not with `small`, of whose
    tokeniser the model knows nothing but its mask. 0 leaves all as it is.
    bn_ignore_padding: the MLP's batch norm does not see the zeros behind regions that were left out; the original's
    does. A second batch norm that the original never applies is there for its name.
    Source: Chen et al. 2021; Lee et al. 2018 for the loss.
    """

    image: Literal["regions", "grid"] = "regions"
    text: Literal["bert", "bigru"] = "bert"
    dim: int = 1024
    words: int = 300
    word_init: float = 0.1
    bert: str = "base"
    tokeniser: Path | None = None
    pieces: int = 8000
    backbone: _Backbones = "detector"
    weights: Path | None = None
    drop: float = 0.2
    bn_ignore_padding: bool = True

    def __post_init__(self) -> None:
        if self.dim < 2 or min(self.words, self.pieces) < 1 or not self.word_init > 0:
            got = f"{self.dim}, {self.words}, {self.pieces} and {self.word_init}"
            raise InputError(f"dim must be at least 2, words and pieces at least 1, word_init > 0; got {got}")
        if not 0 <= self.drop < 1:
            raise InputError(f"drop must be in [0, 1); got {self.drop}")
        if self.weights is not None and self.image != "grid":
            raise InputError(f"weights are for the backbone of image=grid; got image={self.image}")
        size_of(self.bert)

    def prepare(self, words: Tokens) -> Tokens:
        """The vocabulary with `<mask>` behind its words, for bigru; tokenisers as they are."""
        return Vocabulary((*words.words, "<mask>")) if isinstance(words, Vocabulary) else words

    def tokens(self, captions: Sequence[str], min_count: int) -> Tokens:
        """Words and `<mask>`, the tokeniser of a folder, or one learnt. Raises InputError when no folder is named."""
        if self.text == "bigru":
            return self.prepare(Vocabulary.build(captions, min_count))
        return self._subwords() or Subwords.train(captions, self.pieces)

    def kept(self) -> Mapping[str, str]:
        if self.text == "bigru":
            return {}
        subwords = self._subwords() if self._folder else None
        kept = {"tokeniser": subwords.to_json()} if subwords else {}
        configured = kept_configuration(self.bert)
        return {**kept, "bert": configured} if configured else kept

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model, with the weights that its folder and file hold. Raises InputError when items do not fit, and
        for a grid without a file."""
        if self.image == "grid":
            require_trained(self.weights, f"backbone={self.backbone}, whose batch norms never train")
        model = self.rebuild(item_shape, vocabulary_size, self.kept(), self.weights)
        if self.text == "bert" and size_of(self.bert) is None:
            load_folder(model.get_submodule("text.bert"), Path(self.bert).expanduser())
        return model

    def rebuild(
        self, item_shape: Shape, vocabulary_size: int, kept: Mapping[str, str], weights: Path | None = None
    ) -> Encoder:
        image = self._image(item_shape, weights)
        if self.text == "bigru":
            return _Towers(image, GruWords(vocabulary_size, self.words, self.dim, self.word_init, self.drop))
        known = configuration(self.bert, vocabulary_size, kept.get("bert"))
        width, size = int(known["hidden_size"]), int(known["vocab_size"])
        return _Towers(image, BertWords(empty(known), width, size, self.dim, self.drop, self._marks(kept)))

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file of Chen et al.: gpool in the first of two state dicts, with a BERT or a GRU in the second."""
        if len(original.towers) != 2 or not any("gpool." in name for name in original.towers[0]):
            return None
        image, text = original.towers
        for name in ("no_imgnorm", "no_txtnorm"):
            if told.flag(original.options, name, False):
                raise InputError(f"option {name} of the file must be false; vectors of this encoder have unit length")
        grid = any(name.startswith("backbone.") for name in image)
        image, ignored = one_of_both(image) if grid else (image, ())
        unread = {"bert.embeddings.position_ids"} & text.keys()
        text = {name: tensor for name, tensor in text.items() if name not in unread}
        spec, rows = _text_options(text)
        fc = told.tensor_of(image, "image_encoder.fc.weight" if grid else "fc.weight", 2)
        source = told.text(original.options, "backbone_source", "detector")
        side = int(_PIXELS * told.number(original.options, "input_scale_factor", 1.0))
        encoder = cls(
            image="grid" if grid else "regions",
            dim=fc.shape[0],
            backbone=cast(_Backbones, name_of(image, source)) if grid else "detector",
            bn_ignore_padding=False,
            **spec,  # type: ignore[arg-type]
        )
        shape = (3, side, side) if grid else (_REGIONS, fc.shape[1])
        weights = {f"image.{k}": v for k, v in image.items()} | {f"text.{k}": v for k, v in text.items()}
        weights = told.fitted(encoder, shape, rows, weights)
        notices = (f"pictures: resized to {side} x {side}, not cropped",) if grid else ()
        return OpenedModel(
            encoder, weights, shape, rows, told.triplet_spec(original.options), (*ignored, *sorted(unread)), notices
        )

    @property
    def _folder(self) -> Path | None:
        return self.tokeniser or (None if size_of(self.bert) else Path(self.bert))

    def _subwords(self) -> Subwords | None:
        """The tokeniser of the folder; None when it is to be learnt."""
        if self._folder is None and self.bert != "small":
            raise InputError(f"bert={self.bert} must come with its tokeniser: tokeniser=FOLDER; or take bert=small")
        return None if self._folder is None else Subwords.from_folder(self._folder)

    def _marks(self, kept: Mapping[str, str]) -> Marks | None:
        if "tokeniser" not in kept:
            return Marks(SPECIAL.index("[MASK]")) if self.bert == "small" else None
        subwords = Subwords.from_json(kept["tokeniser"])
        mask = subwords.id_of("[MASK]")
        if mask is None:
            raise InputError(f"the tokeniser of {self._folder} must have a [MASK] token; it has none")
        return Marks(mask, subwords.continuing)

    def _image(self, shape: Shape, weights: Path | None) -> nn.Module:
        if isinstance(shape, tuple) and self.image == "regions" and len(shape) == 2:
            return Regions(shape[1], self.dim, self.drop, self.bn_ignore_padding)
        if isinstance(shape, tuple) and self.image == "grid" and len(shape) == 3 and shape[0] == 3:
            return Grids(Backbone(self.backbone, weights), self.dim, self.drop)
        need = "regions, (R, d)" if self.image == "regions" else "pixels, (3, H, W)"
        raise InputError(f"image={self.image} must be given {need}; the data set has items of shape {shape}")


class _Towers(Encoder):
    def __init__(self, image: nn.Module, text: nn.Module) -> None:
        super().__init__()
        self.image, self.text = image, text

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        return EncodedBatch(unit(self.image(images).float()))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return EncodedBatch(unit(self.text(ids, lengths).float()))

    def groups(self) -> Mapping[str, list[nn.Parameter]]:
        named = {"bert": getattr(self.text, "bert", None), "backbone": getattr(self.image, "backbone", None)}
        return {name: list(part.parameters()) for name, part in named.items() if part is not None}


def _text_options(text: Mapping[str, Tensor]) -> tuple[dict[str, object], int]:
    """The options that a text tower's tensors tell, and the rows of its embedding."""
    if not any(name.startswith("bert.") for name in text):
        embed = told.tensor_of(text, "embed.weight", 2)
        return {"text": "bigru", "words": embed.shape[1]}, len(embed)
    embed = told.tensor_of(text, "bert.embeddings.word_embeddings.weight", 2)
    layers = len({name.split(".")[3] for name in text if name.startswith("bert.encoder.layer.")})
    if embed.shape[1] % HEAD or not layers:
        raise InputError(f"the BERT must have layers, and a width that is a multiple of {HEAD}; got {embed.shape[1]}")
    size = f"{layers}x{embed.shape[1]}"
    return {"text": "bert", "bert": "base" if size == "12x768" else size}, len(embed)
