"""BFAN: cross attention in both directions that drops what is less relevant than the rest and attends anew."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from .base import Encoder, EncoderSpec
from .layers.cross_attention import (
    Clip,
    attended_cosines,
    attention_weights,
    dot_products,
    gram_matrices,
    mean_over_queries,
    vector_lengths,
)
from .layers.focal_attention import EXACT_TIE, Focal, focus_attention, threshold_of
from .layers.scan_towers import (
    RegionTower,
    WordTower,
    encode_regions,
    require_positive,
    require_region_shape,
    word_batch,
)
from .released.known_options.bfan import OPTIONS
from .released.option_table import OptionTable
from .released.options import read_number
from .released.scan_family import (
    has_region_and_word_towers,
    open_model,
    prefixed_weights,
    read_towers,
    read_weight_norm,
    region_width,
    translate_option,
)
from .types import ANY_NUMBER, EncodedBatch, Items, ItemShape, OpenedModel, ReleasedFile

_FOCAL: dict[str, Focal] = {"equal": "equal", "prob": "prob"}
_NOTICE = (
    "BFAN was trained on files of word ids, and it is not known whether they hold <start> and <end>. Compare its "
    "recalls with the published ones before relying on it"
)


@dataclass(frozen=True)
class BFAN(EncoderSpec):
    """S = mean_words cos(w, v_w) + mean_regions cos(r, v_r), v_i = Σ_j a'_ij c_j, a' = H a / Σ H a.

    a is SCAN's attention with clipped, l2-normalised similarities and λ = lambda_softmax. H keeps context element j of
    query i if it is more relevant than the others: `equal` a_ij > 1/L, `prob` a_ij > Σ_k a_ik^1.5 / Σ_k a_ik^0.5. H is
    constant in the gradient. Where it keeps nothing (equal attention, or one word only) the original divides 0 by 0;
    here a stays unchanged. S lies in [−2, 2], and the margin is on that scale.

    In evaluation H of attention near the threshold is decided in float64, in which the original evaluates; in training
    what float32 cannot tell from the threshold is dropped. Source: Liu et al. 2019.
    """

    released_options: ClassVar[OptionTable] = OPTIONS

    focal: Focal = "equal"  # condition of H for a context element to be kept
    lambda_softmax: float = 20.0  # λ of the attention's softmax
    clip: Clip = "leaky"  # negative similarities, as in scan: hard sets them to 0, leaky to a tenth
    layers: int = 1  # number of GRUs, one over the states of the other
    weight_norm: bool = False  # the map of regions as g V / |V|
    no_imgnorm: bool = False  # do not scale vectors of regions to unit length
    no_txtnorm: bool = False  # do not scale vectors of words to unit length
    dim: int = 1024  # joint width
    words: int = 300  # width of a word vector
    word_init: float = 0.1  # word vectors start uniform in ±word_init

    def __post_init__(self) -> None:
        require_positive(dim=self.dim, words=self.words, word_init=self.word_init, lambda_softmax=self.lambda_softmax)
        require_positive(layers=self.layers)

    def build(self, item_shape: ItemShape, vocabulary_size: int) -> Encoder:
        """Return a new model for images of (regions, d). Raises InputError for other items."""
        return _Bfan(self, require_region_shape(item_shape, "bfan"), vocabulary_size)

    @classmethod
    def from_released(cls, released: ReleasedFile) -> OpenedModel | None:
        """Open a file whose options name `focal_type`; the tensors alone do not distinguish BFAN from SCAN."""
        options = released.options
        if "focal_type" not in options or not has_region_and_word_towers(released):
            return None
        weights = prefixed_weights(released)
        spec = cls(
            focal=translate_option(options, "focal_type", _FOCAL, "equal"),
            lambda_softmax=read_number(options, "lambda_softmax", 20.0),
            weight_norm=read_weight_norm(weights, options),
            **read_towers(weights, options, "text.rnn"),
        )
        return open_model(spec, weights, (ANY_NUMBER, region_width(weights)), options, [_NOTICE])


class _Bfan(Encoder):
    pairwise = True
    is_cosine = False
    score_min = -2.0
    score_max = 2.0

    def __init__(self, spec: BFAN, shape: tuple[int, int], vocabulary_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.image = RegionTower(shape[1], spec.dim, spec.weight_norm, spec.no_imgnorm)
        self.text = WordTower(vocabulary_size, spec.words, spec.dim, True, spec.word_init, spec.layers, spec.no_txtnorm)

    def encode_images(self, images: Items) -> EncodedBatch:
        return encode_regions(self.image, images)

    def encode_texts(self, ids: Tensor, lengths: Tensor) -> EncodedBatch:
        return word_batch(self.text(ids, lengths), lengths)

    def score_pairs(self, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
        assert images.local is not None and texts.local is not None
        s = dot_products(images.local, texts.local)
        to_words = self._mean(s, images, texts)
        return to_words + self._mean(s.permute(3, 2, 1, 0).contiguous(), texts, images).T

    def _mean(self, s: Tensor, context: EncodedBatch, queries: EncodedBatch) -> Tensor:
        """Return the mean of r over the queries, (k, q), from s (k, C, Q, q)."""
        assert context.local is not None and queries.local is not None
        a = self._attend(s, context.mask)
        decide = partial(self._decide, context, queries) if self._in_float64 else None
        r = attended_cosines(
            focus_attention(a, self.spec.focal, _context_sizes(context), queries.mask, decide),
            s,
            gram_matrices(context.local),
            vector_lengths(queries.local),
        )
        return mean_over_queries(r, queries.mask)

    def _attend(self, s: Tensor, present_context: Tensor | None) -> Tensor:
        return attention_weights(s, self.spec.lambda_softmax, "clipped_l2norm", self.spec.clip, present_context)

    @property
    def _in_float64(self) -> bool:
        """Whether attention near the threshold is decided in float64: in eval mode, where the device has it."""
        return not self.training and next(self.parameters()).device.type != "mps"

    def _decide(self, context: EncodedBatch, queries: EncodedBatch, items: Tensor, columns: Tensor) -> Tensor:
        """Return H of pairs of a context item and a query item, (p,) each, in float64: (p, C, Q)."""
        pairs = context.select(items)
        assert pairs.local is not None and queries.local is not None
        s = torch.bmm(pairs.local.double(), queries.local[columns].double().transpose(1, 2))
        a = self._attend(s[..., None], pairs.mask)
        threshold = threshold_of(a, self.spec.focal, _context_sizes(pairs))
        return (a > threshold * (1 + EXACT_TIE))[..., 0]


def _context_sizes(batch: EncodedBatch) -> Tensor:
    """Return (k,) the number of present elements of each item."""
    assert batch.local is not None
    if batch.mask is None:
        return torch.full(batch.local.shape[:1], batch.local.shape[1], device=batch.local.device)
    return batch.lengths
