"""VSRN: regions exchange information on a graph, a GRU reads them, and its last state is compared to the caption's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from lossscope.core.similarity import Mask
from lossscope.errors import InputError
from lossscope.text.word_tokenisers import WordTokeniser

from .base import Encoder, EncoderSpec
from .layers.captioning import Captioning
from .layers.initialisation import init_xavier
from .layers.vector_scores import Measure, VectorEncoder
from .layers.vse_towers import GruTower
from .released.known_options.vsrn import OPTIONS
from .released.option_table import OptionTable
from .released.options import count_layers, fit_weights, read_text, require_agreement, require_tensor
from .released.vse_options import read_vector_options, training_objective
from .types import ANY_NUMBER, EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

_FLICKR = "f30k_precomp"  # the one data set whose model the authors built otherwise


@dataclass(frozen=True)
class VSRN(EncoderSpec):
    """v = norm(BN(GRU(norm(graph⁴(fc(regions)))))), t = norm(GRU(words) at the last token), S = v · t.

    A graph block is x_i + BN(W · 1/R Σ_j ⟨θ x_i, φ x_j⟩ g x_j); its BN starts at weight and bias 0, so that the block
    starts as the identity. region_norm_axis=channels scales each region to unit length, which is sound; `regions`
    scales each channel over the regions, as the original's code does. captions=true adds the caption branch, whose
    loss, −log p of a batch's captions summed and divided by their number, is added to the objective's in training with
    weight 1; released files have no branch. measure, use_abs and no_imgnorm are VSE++'s.

    Not reproduced: the original lists the parameters of the branch and of the towers twice, so that Adam steps twice
    with them and clipping counts them twice.

    Source: Li et al. 2019.
    """

    dim: int = 2048  # width of all layers
    words: int = 300  # width of a word vector
    word_init: float = 0.1  # word vectors start uniform in ±word_init
    blocks: int = 4  # number of graph blocks
    region_norm_axis: Literal["channels", "regions"] = "channels"  # what is scaled to unit length
    fc_norm: bool = False  # scale right after fc too (the original on COCO)
    final_bn: bool = True  # batch norm on the GRU's state (the original on Flickr30k; Bleeker & de Rijke always)
    captions: bool = False  # train the caption branch too
    longest: int = 60  # ids of a caption that the branch learns at most
    measure: Measure = "cosine"  # score of two vectors
    use_abs: bool = False  # take absolute values of the vectors
    no_imgnorm: bool = False  # do not scale v to unit length
    layers: int = 1  # of the GRU over words

    released_options: ClassVar[OptionTable] = OPTIONS

    def __post_init__(self) -> None:
        if min(self.dim, self.words, self.blocks) < 1:
            raise InputError(f"dim, words and blocks must be at least 1; got {self.dim}, {self.words}, {self.blocks}")
        if self.layers < 1:
            raise InputError(f"layers must be at least 1; got {self.layers}")
        if not self.word_init > 0 or self.longest < 3:
            raise InputError(f"word_init must be > 0 and longest >= 3; got {self.word_init} and {self.longest}")

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model. Raises InputError unless items are regions, (R, d)."""
        if isinstance(item_shape, Mapping) or len(item_shape) != 2:
            raise InputError(f"vsrn must be given regions, (R, d); the data set has items of shape {item_shape}")
        return _VSRN(self, item_shape[1], vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file of Li et al. or of Bleeker & de Rijke 2022: graph blocks in the first of two state dicts."""
        if len(released.towers) != 2 or not any(name.startswith("Rs_GCN_1.") for name in released.towers[0]):
            return None
        image, text = released.towers
        fc, embed = require_tensor(image, "fc.weight", 2), require_tensor(text, "embed.weight", 2)
        data = read_text(released.options, "data_name")
        if not data.endswith("_precomp"):
            raise InputError(f"option data_name of the file must end in _precomp, as VSRN reads regions; got {data!r}")
        spec = cls(
            dim=fc.shape[0],
            words=embed.shape[1],
            blocks=len({name.partition(".")[0] for name in image if name.startswith("Rs_GCN_")}),
            region_norm_axis="regions",
            fc_norm=data != _FLICKR,
            final_bn=data == _FLICKR or ("bn.weight" in image and "criterion" in released.options),
            layers=count_layers(text, "rnn"),
            **read_vector_options(released.options),
        )
        sizes = {"embed_size": spec.dim, "word_dim": spec.words, "num_layers": spec.layers}
        require_agreement(released.options, {**sizes, "vocab_size": len(embed), "img_dim": fc.shape[1]})
        shape = (ANY_NUMBER, fc.shape[1])
        weights = {f"image.{k}": v for k, v in image.items()} | {f"text.{k}": v for k, v in text.items()}
        weights = fit_weights(spec, shape, len(embed), weights)
        notice = "files of this family do not hold the caption branch: training continues without it (captions=false)"
        objective = training_objective(released.options)
        words: WordTokeniser = "treebank" if "criterion" in released.options else "treebank-ascii"  # Bleeker; Li
        return OpenedModel(spec, weights, shape, len(embed), objective, notices=(notice,), word_tokeniser=words)


class _VSRN(VectorEncoder):
    def __init__(self, spec: VSRN, width: int, vocabulary_size: int) -> None:
        image = _Regions(spec, width)
        text = GruTower(vocabulary_size, spec.words, spec.dim, spec.word_init, spec.layers)
        super().__init__(image, text, spec.measure, spec.use_abs, spec.no_imgnorm)
        if spec.captions:
            self.captioning = Captioning(spec.dim, vocabulary_size, spec.words, spec.longest)

    def encode_images(self, images: Items) -> EncodedBatch:
        assert isinstance(images, Tensor)
        vectors, regions = self.image(images.float())
        extra = {"regions": regions.float()} if self.training and hasattr(self, "captioning") else {}
        return EncodedBatch(self.finish_images(vectors), extra=extra)

    def extra_loss(
        self, images: EncodedBatch, texts: EncodedBatch, S: Tensor, mask: Mask, ids: Tensor, lengths: Tensor
    ) -> Tensor | None:
        if "regions" not in images.extra:
            return None
        image_of_caption = mask.match.to(torch.uint8).argmax(0)  # the image of each caption
        loss: Tensor = self.captioning(images.extra["regions"][image_of_caption], ids, lengths)
        return loss


class _Regions(nn.Module):
    def __init__(self, spec: VSRN, width: int) -> None:
        super().__init__()
        self.axis = 1 if spec.region_norm_axis == "regions" else 2
        self.fc_norm, self.blocks = spec.fc_norm, spec.blocks
        self.fc = init_xavier(nn.Linear(width, spec.dim))
        for index in range(1, spec.blocks + 1):
            self.add_module(f"Rs_GCN_{index}", _Graph(spec.dim))
        self.img_rnn = nn.GRU(spec.dim, spec.dim, batch_first=True)
        if spec.final_bn:
            self.bn = nn.BatchNorm1d(spec.dim)

    def forward(self, regions: Tensor) -> tuple[Tensor, Tensor]:
        """(n, R, d) -> the state (n, dim) and the regions after the graph (n, R, dim)."""
        x: Tensor = self.fc(regions)
        x = (self._unit(x) if self.fc_norm else x).transpose(1, 2)
        for index in range(1, self.blocks + 1):
            x = self.get_submodule(f"Rs_GCN_{index}")(x)
        graph = self._unit(x.transpose(1, 2))
        state = self.img_rnn(graph)[1].squeeze(0)
        return (self.bn(state) if hasattr(self, "bn") else state), graph

    def _unit(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=self.axis)


class _Graph(nn.Module):
    """x + BN(W · y), y_i = 1/R Σ_j ⟨θ x_i, φ x_j⟩ g x_j, on (n, dim, R)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.g, self.theta, self.phi = (nn.Conv1d(dim, dim, 1) for _ in range(3))
        norm = nn.BatchNorm1d(dim)
        nn.init.zeros_(norm.weight)
        self.W = nn.Sequential(nn.Conv1d(dim, dim, 1), norm)

    def forward(self, x: Tensor) -> Tensor:
        affinity = self.theta(x).transpose(1, 2) @ self.phi(x) / x.shape[2]
        return self.W(self.g(x) @ affinity.transpose(1, 2)) + x  # type: ignore[no-any-return]
