"""VSE++: an image tower and a GRU, meeting as unit vectors in one space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.errors import InputError

from .base import Encoder, EncoderSpec
from .layers.image_augmentation import view
from .layers.pooled_resnet import DEPTHS, Resnet, network_of, require_trained
from .layers.vgg import Vgg19
from .layers.vit import VITS, Vit
from .layers.vse_towers import BatchNorms, CnnTower, LastWord, LinearTower, SmallCNN
from .released import options as told
from .types import EncodedBatch, Items, OpenedModel, ReleasedFile, Shape

_Images = Literal[
    "cnn-small", "linear", "resnet18", "resnet50", "resnet101", "resnet152", "vgg19", "vit-small", "vit-base"
]


@dataclass(frozen=True)
class VSEPP(EncoderSpec):
    """v = norm(fc(tower(image))), t = norm(GRU(words) at the last token), S = v · t.

    image: `cnn-small` (four convolutions, trains from scratch on a CPU), `linear` (precomputed vectors or regions),
    `resnet18|50|101|152`, `vgg19`, `vit-small|base` (`weights` names a file with torchvision's or timm's parameter
    names, which a frozen network must have; `finetune` trains it).
    dim: joint width. words: width of a word vector. width: channels of the first convolution of cnn-small;
    grid: cells along each side that its last map is averaged over (1: whole picture); centre: batch norm on its
    output. Without it a loss on hardest negatives that collapses draws all similarities to 1, with it to 0.
    pool: how regions become one vector (max, as Li et al. 2022 B.1.1; mean). unit_input: features are scaled to unit
    length first; the original takes them as they are. word_init: word vectors start uniform in ±word_init; the
    original's 0.1 leaves the GRU almost without input at first, which costs epochs of plateau.
    crop: side of a random resized crop, mirrored half the time, in training, and of the middle in eval; 0 for none
    (the original: 224 of pictures whose short side is 256).
    bn_mode: batch norms and dropout of a frozen network in training. `frozen`: as in eval. `ecir`: as in training, so
    statistics of the batch, and running ones that go on adapting. `original`: the same until the original's
    validation every 500 steps, after which it forgot to switch back before the next epoch (see towers.CnnTower).
    measure: `cosine`, or `order`, S = −|max(0, t − v)|. use_abs: vectors are made positive. no_imgnorm: v keeps its
    length. Originals: dim 1024, words 300, word_init 0.1.
    Captions that a Python 3 port read as bytes (`b'...'`) are a matter of the data set, not of this model.
    Source: Faghri et al. 2018; Vendrov et al. 2016 (order); Li et al. 2022, B.1.1.
    """

    image: _Images = "cnn-small"
    dim: int = 256
    words: int = 128
    width: int = 32
    grid: int = 4
    centre: bool = True
    pool: Literal["max", "mean"] = "max"
    word_init: float = 1.0
    weights: Path | None = None
    finetune: bool = False
    crop: int = 0
    unit_input: bool = False
    bn_mode: BatchNorms = "frozen"
    measure: Literal["cosine", "order"] = "cosine"
    use_abs: bool = False
    no_imgnorm: bool = False

    def __post_init__(self) -> None:
        if min(self.dim, self.words, self.width) < 1:
            raise InputError(f"dim, words and width must be at least 1; got {self.dim}, {self.words}, {self.width}")
        if not self.word_init > 0:
            raise InputError(f"word_init must be > 0; got {self.word_init}")
        if self.weights is not None and self.image in ("cnn-small", "linear"):
            raise InputError(f"weights are for resnet, vgg19 and vit towers; got image={self.image}")
        if self.crop < 0 or (self.crop and self.image == "linear"):
            raise InputError(f"crop must be >= 0, and 0 for image=linear; got {self.crop}")

    def build(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        """A new model. Raises InputError for items that the tower does not take, and a frozen network of no file."""
        if self.image not in ("cnn-small", "linear") and not self.finetune:
            require_trained(self.weights, f"the frozen network image={self.image}", ", or train it, finetune=true")
        return self._towers(item_shape, vocabulary_size)

    def rebuild(self, item_shape: Shape, vocabulary_size: int, kept: Mapping[str, str]) -> Encoder:
        return replace(self, weights=None)._towers(item_shape, vocabulary_size)

    @classmethod
    def from_released(cls, original: ReleasedFile) -> OpenedModel | None:
        """A file of Faghri et al. or of Bleeker & de Rijke 2022: raw pictures (`cnn.*`) or precomputed vectors."""
        if len(original.towers) != 2 or not _known(original):
            return None
        image, text = original.towers
        fc, embed = told.tensor_of(image, "fc.weight", 2), told.tensor_of(text, "embed.weight", 2)
        raw = any(name.startswith("cnn.") for name in image)
        measure = told.text(original.options, "measure", "cosine")
        if measure not in ("cosine", "order"):
            raise InputError(f"option measure of the file must be cosine or order; got {measure!r}")
        spec = cls(
            image=_network(image) if raw else "linear",
            dim=fc.shape[0],
            words=embed.shape[1],
            word_init=0.1,
            finetune=raw and told.flag(original.options, "finetune", False),
            crop=224 if raw else 0,
            bn_mode="original" if raw else "frozen",
            measure=cast('Literal["cosine", "order"]', measure),
            use_abs=told.flag(original.options, "use_abs", False),
            no_imgnorm=told.flag(original.options, "no_imgnorm", False),
        )
        shape = (3, 256, 256) if raw else (fc.shape[1],)
        weights = {f"image.{_ours(k)}": v for k, v in image.items()} | {f"text.{k}": v for k, v in text.items()}
        weights |= CnnTower.uncounted("image.") if raw else {}
        weights = told.fitted(spec, shape, len(embed), weights)
        notice = ("pictures: short side resized to 256; the middle 224 x 224 is read",) if raw else ()
        return OpenedModel(spec, weights, shape, len(embed), told.triplet_spec(original.options), notices=notice)

    def _towers(self, item_shape: Shape, vocabulary_size: int) -> Encoder:
        text = LastWord(vocabulary_size, self.words, self.dim, self.word_init)
        return _Towers(self._image_tower(item_shape), text, self)

    def _image_tower(self, shape: Shape) -> nn.Module:
        pixels = isinstance(shape, tuple) and len(shape) == 3 and shape[0] == 3
        if isinstance(shape, Mapping) or pixels == (self.image == "linear"):
            need = "features, (d,) or (regions, d)" if self.image == "linear" else "pixels, (3, H, W)"
            raise InputError(f"image={self.image} must be given {need}; the data set has items of shape {shape}")
        if self.image == "linear":
            return LinearTower(shape[-1], self.dim, self.pool, self.unit_input)
        if self.crop > min(shape[1:]):
            raise InputError(f"crop must be at most the side of the pictures, {min(shape[1:])}; got {self.crop}")
        size = (self.crop, self.crop) if self.crop else shape[1:]
        if self.image == "cnn-small":
            return SmallCNN(size, self.width, self.grid, self.dim, self.centre)
        cnn = self._network(size)
        return CnnTower(cnn, cnn.width, self.dim, self.finetune, self.bn_mode)

    def _network(self, size: tuple[int, ...]) -> Resnet | Vgg19 | Vit:
        if self.image in VITS:
            return Vit(VITS[self.image], size, self.weights)
        return Vgg19(self.weights) if self.image == "vgg19" else Resnet(DEPTHS[self.image], self.weights)


class _Towers(Encoder):
    def __init__(self, image: nn.Module, text: nn.Module, spec: VSEPP) -> None:
        super().__init__()
        self.image = image
        self.text = text
        self.spec = spec
        self.pairwise = spec.measure == "order"
        self.pairs_at_once = 1 << 14
        self.is_cosine = spec.measure == "cosine" and not spec.no_imgnorm
        if not self.is_cosine:
            self.score_min = -2.0 if self.pairwise and not spec.no_imgnorm else -float("inf")
            self.score_max = 0.0 if self.pairwise else float("inf")

    def groups(self) -> Mapping[str, list[nn.Parameter]]:
        return {"backbone": list(self.image.cnn.parameters())} if isinstance(self.image, CnnTower) else {}

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        vectors = self.image(view(images, self.spec.crop, self.training)).float()
        return EncodedBatch(self._signed(vectors if self.spec.no_imgnorm else normalise(vectors)))

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return EncodedBatch(self._signed(normalise(self.text(ids, lengths).float())))

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        """−|max(0, t − v)|, (n, m); its slope is 0 where no coordinate of t is above v's."""
        above = (texts.vectors[None, :, :] - images.vectors[:, None, :]).relu()
        return -torch.linalg.vector_norm(above, dim=2)  # type: ignore[no-any-return]

    def _signed(self, vectors: Tensor) -> Tensor:
        return vectors.abs() if self.spec.use_abs else vectors


def _known(original: ReleasedFile) -> bool:
    image, text = original.towers
    if "rnn.weight_ih_l0" not in text or any(name.endswith("_reverse") for name in text):
        return False
    precomputed = all(name.startswith("fc.") for name in image) and "fc.weight_v" not in image
    others = {"cross_attn", "focal_type"} & original.options.keys()
    return any(name.startswith("cnn.") for name in image) or (precomputed and not others)


def _network(image: Mapping[str, Tensor]) -> _Images:
    if any(name.startswith("cnn.features.") for name in image):
        return "vgg19"
    return cast("_Images", network_of(name for name in image if name.startswith("cnn.")))


def _ours(name: str) -> str:
    """A name of the image tower without what data-parallel wrapping put in; the places of vgg's layers as today."""
    name = name.replace("cnn.module.", "cnn.").replace("cnn.features.module.", "cnn.features.")
    return name.replace("cnn.classifier.1.", "cnn.classifier.0.").replace("cnn.classifier.4.", "cnn.classifier.3.")
