"""VSE++: an image tower and a GRU, compared as unit vectors in one space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.text.word_tokenisers import WordTokeniser

from .base import Encoder, EncoderSpec
from .layers.image_augmentation import augment_or_crop
from .layers.vector_scores import Measure, VectorEncoder
from .layers.vse_towers import BatchNorms, CnnTower, GruTower, LinearTower, SmallCNN
from .released.known_options.vsepp import OPTIONS
from .released.option_table import OptionTable
from .released.options import count_layers, fit_weights, read_flag, require_agreement, require_tensor
from .released.vse_options import read_vector_options, training_objective
from .released.vsepp import infer_batch_norms, infer_network, is_vsepp, rename, require_images
from .types import EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

if TYPE_CHECKING:
    from .layers.pooled_resnet import Resnet
    from .layers.vgg import Vgg19
    from .layers.vit import Vit

_Images = Literal[
    "cnn-small", "linear", "resnet18", "resnet50", "resnet101", "resnet152", "vgg19", "vit-small", "vit-base"
]


@dataclass(frozen=True)
class VSEPP(EncoderSpec):
    """v = norm(fc(tower(image))), t = norm(GRU(words) at the last token), S = v · t.

    Image towers: `cnn-small`, four convolutions, trains from scratch on a CPU; `linear` reads precomputed vectors or
    regions; `resnet18|50|101|152`, `vgg19` and `vit-small|base` read a file of `weights` with torchvision's or timm's
    parameter names, which a network that is not fine-tuned must have.

    Without `centre` a loss on hardest negatives that collapses drives all similarities to 1, with it to 0. pool=max
    follows Li et al. 2022, B.1.1. The original takes features as they are (unit_input=false), and starts word vectors
    in ±0.1, which leaves the GRU almost without input at first and costs epochs of plateau. It crops 224 pixels of
    pictures whose short side is 256.

    bn_mode is the mode of batch norm and dropout of a frozen network in training. `frozen`: as in eval. `ecir`: as in
    training, with statistics of the batch, and running ones that continue to adapt. `original`: as `ecir` until the
    original's validation every 500 steps, after which it stayed in eval mode until the next epoch
    (vse_towers.CnnTower).

    measure=order is S = −|max(0, t − v)|; t has unit length whatever no_imgnorm is, and use_abs is taken last.
    Originals: dim 1024, words 300, word_init 0.1. Captions that a Python 3 port read as bytes (`b'...'`) concern the
    data set, not this model.

    Source: Faghri et al. 2018; Vendrov et al. 2016 (order); Li et al. 2022, B.1.1.
    """

    image: _Images = "cnn-small"  # image tower
    dim: int = 256  # joint width
    words: int = 128  # width of a word vector
    width: int = 32  # channels of the first convolution of cnn-small
    grid: int = 4  # cells along each side over which cnn-small averages its last map; 1: the whole picture
    centre: bool = True  # batch norm on the output of cnn-small
    pool: Literal["max", "mean"] = "max"  # how regions become one vector
    word_init: float = 1.0  # word vectors start uniform in ±word_init
    weights: Path | None = None  # file of weights for resnet, vgg19 and vit towers
    finetune: bool = False  # train the network of these towers
    crop: int = 0  # side of a random resized crop, flipped half the time; in eval of the middle; 0 for none
    unit_input: bool = False  # scale features to unit length first
    bn_mode: BatchNorms = "frozen"  # batch norm and dropout of a frozen network in training
    measure: Measure = "cosine"  # score of two vectors
    use_abs: bool = False  # take absolute values of the vectors
    no_imgnorm: bool = False  # do not scale v to unit length
    layers: int = 1  # of the GRU

    released_options: ClassVar[OptionTable] = OPTIONS

    def __post_init__(self) -> None:
        if min(self.dim, self.words, self.width) < 1:
            raise InputError(f"dim, words and width must be at least 1; got {self.dim}, {self.words}, {self.width}")
        if self.layers < 1:
            raise InputError(f"layers must be at least 1; got {self.layers}")
        if not self.word_init > 0:
            raise InputError(f"word_init must be > 0; got {self.word_init}")
        if self.weights is not None and self.image in ("cnn-small", "linear"):
            raise InputError(f"weights are for resnet, vgg19 and vit towers; got image={self.image}")
        if self.crop < 0 or (self.crop and self.image == "linear"):
            raise InputError(f"crop must be >= 0, and 0 for image=linear; got {self.crop}")

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model. Raises InputError for items that do not fit, and for a frozen network without a file."""
        if self.image not in ("cnn-small", "linear") and not self.finetune:
            from .layers.pooled_resnet import require_weights

            require_weights(self.weights, f"the frozen network image={self.image}", ", or train it, finetune=true")
        return self._build_towers(item_shape, vocabulary_size)

    def rebuild(self, item_shape: ItemShape, vocabulary_size: int, stored_files: Mapping[str, str]) -> Encoder:
        return replace(self, weights=None)._build_towers(item_shape, vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of Faghri et al. or of Bleeker & de Rijke 2022: raw pictures (`cnn.*`) or precomputed vectors."""
        if len(released.towers) != 2 or not is_vsepp(released):
            return None
        image, text = released.towers
        fc, embed = require_tensor(image, "fc.weight", 2), require_tensor(text, "embed.weight", 2)
        raw = any(name.startswith("cnn.") for name in image)
        spec = cls(
            image=cast("_Images", infer_network(image)) if raw else "linear",
            dim=fc.shape[0],
            words=embed.shape[1],
            word_init=0.1,
            finetune=raw and read_flag(released.options, "finetune", False),
            crop=224 if raw else 0,
            bn_mode=infer_batch_norms(released.options) if raw else "frozen",
            layers=count_layers(text, "rnn"),
            **read_vector_options(released.options),
        )
        require_images(released.options, spec.image)
        sizes = {"embed_size": spec.dim, "word_dim": spec.words, "num_layers": spec.layers, "vocab_size": len(embed)}
        require_agreement(released.options, sizes if raw else {**sizes, "img_dim": fc.shape[1]})
        shape = (3, 256, 256) if raw else (fc.shape[1],)
        weights = {f"image.{rename(k)}": v for k, v in image.items()} | {f"text.{k}": v for k, v in text.items()}
        weights |= CnnTower.initial_counters("image.") if spec.bn_mode == "original" else {}
        weights = fit_weights(spec, shape, len(embed), weights)
        notice = ("pictures: short side resized to 256; the middle 224 x 224 is read",) if raw else ()
        objective = training_objective(released.options)
        reading = {"fit": "short-side", "resample": "bilinear"} if raw else {}
        words: WordTokeniser = "treebank-ascii" if released.of_python2 else "treebank"  # where texts are bytes, or not
        return OpenedModel(
            spec, weights, shape, len(embed), objective, notices=notice, reading=reading, word_tokeniser=words
        )

    def _build_towers(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        text = GruTower(vocabulary_size, self.words, self.dim, self.word_init, self.layers)
        return _Towers(self._build_image_tower(item_shape), text, self)

    def _build_image_tower(self, shape: ItemShape) -> nn.Module:
        pixels = isinstance(shape, tuple) and len(shape) == 3 and shape[0] == 3
        if isinstance(shape, Mapping) or not shape or pixels == (self.image == "linear"):
            need = "features, (d,) or (regions, d)" if self.image == "linear" else "pixels, (3, H, W)"
            raise InputError(f"image={self.image} must be given {need}; the data set has items of shape {shape}")
        if self.image == "linear":
            return LinearTower(shape[-1], self.dim, self.pool, self.unit_input)
        if self.crop > min(shape[1:]):
            raise InputError(f"crop must be at most the side of the pictures, {min(shape[1:])}; got {self.crop}")
        size = (self.crop, self.crop) if self.crop else shape[1:]
        if self.image == "cnn-small":
            return SmallCNN(size, self.width, self.grid, self.dim, self.centre)
        cnn = self._build_network(size)
        return CnnTower(cnn, cnn.width, self.dim, self.finetune, self.bn_mode)

    def _build_network(self, size: tuple[int, ...]) -> Resnet | Vgg19 | Vit:
        """Return the network that `image` names, whose file alone is imported."""
        if self.image.startswith("resnet"):
            from .layers.pooled_resnet import DEPTHS, Resnet

            return Resnet(DEPTHS[self.image], self.weights)
        if self.image == "vgg19":
            from .layers.vgg import Vgg19

            return Vgg19(self.weights)
        from .layers.vit import VITS, Vit

        return Vit(VITS[self.image], size, self.weights)


class _Towers(VectorEncoder):
    def __init__(self, image: nn.Module, text: nn.Module, spec: VSEPP) -> None:
        super().__init__(image, text, spec.measure, spec.use_abs, spec.no_imgnorm)
        self.crop = spec.crop

    def parameter_groups(self) -> Mapping[str, list[nn.Parameter]]:
        return {"backbone": list(self.image.cnn.parameters())} if isinstance(self.image, CnnTower) else {}

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        return EncodedBatch(self.finish_images(self.image(augment_or_crop(images, self.crop, self.training))))
