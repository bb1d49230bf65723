"""Regions and words as unit vectors: the two towers of SCAN, BFAN and SGRAF."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lossscope.errors import InputError

from ..types import ANY_NUMBER, EncodedBatch, Items, ItemShape
from .initialisation import build_embedding, init_xavier

EPS = 1e-8


def unit(x: Tensor) -> Tensor:
    """x / (|x| + 1e-8) along the last axis, in float32 at least; a zero vector stays zero."""
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / (length + EPS)


class RegionTower(nn.Module):
    """v_r = unit(W f_r + b): region features (n, R, d) -> (n, R, D). Name: fc, as in the released files.

    Source: Lee et al. 2018.

    Args:
        width: of a region.
        dim: joint width D.
        weight_norm: W = g V / |V| with one number g.
        raw: leave out `unit`.
    """

    def __init__(self, width: int, dim: int, weight_norm: bool = False, raw: bool = False) -> None:
        super().__init__()
        self.fc = _WeightNormLinear(width, dim) if weight_norm else init_xavier(nn.Linear(width, dim))
        self.raw = raw

    def forward(self, features: Tensor) -> Tensor:
        mapped: Tensor = self.fc(features.to(self.fc.bias.dtype))
        return mapped if self.raw else unit(mapped)


class _WeightNormLinear(nn.Module):
    """x (g V / |V|)' + b, |V| over the whole matrix."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.weight_v = nn.Parameter(torch.empty(dim, width))
        nn.init.xavier_uniform_(self.weight_v)
        self.weight_g = nn.Parameter(torch.linalg.vector_norm(self.weight_v.detach()))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight_v * (self.weight_g / torch.linalg.vector_norm(self.weight_v))
        return nn.functional.linear(x, weight, self.bias)


class WordTower(nn.Module):
    """e_w = unit of the GRU's state at each word, (n, L) ids -> (n, L, D). Names: embed and rnn, as in released files.

    Source: Lee et al. 2018.

    Args:
        vocabulary_size: number of ids.
        words: width of a word vector.
        dim: joint width D.
        bi_gru: read words in both directions.
        word_init: word vectors start uniform in ±word_init; 0.1 in the originals.
        layers: number of GRUs, each of which reads the states of the one before.
        raw: leave out `unit`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        words: int,
        dim: int,
        bi_gru: bool,
        word_init: float,
        layers: int = 1,
        raw: bool = False,
    ) -> None:
        super().__init__()
        self.embed = build_embedding(vocabulary_size, words, word_init)
        self.rnn = nn.GRU(words, dim, layers, batch_first=True, bidirectional=bi_gru)
        self.raw = raw

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        states = gru_states(self.rnn, self.embed(ids), lengths)
        return states if self.raw else unit(states)


def gru_states(rnn: nn.GRU, words: Tensor, lengths: Tensor) -> Tensor:
    """Return the states of a GRU at each word, mean of the directions: words (n, L, d), lengths (n,) -> (n, L, D).

    The backward direction starts at a caption's own last word; padded places are zero vectors.
    """
    packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True, total_length=words.shape[1])
    if rnn.bidirectional:
        forward, backward = states.chunk(2, dim=2)
        states = (forward + backward) / 2
    return states


def word_batch(words: Tensor, lengths: Tensor) -> EncodedBatch:
    """Return captions as an EncodedBatch: words (n, L, D) with zero vectors behind `lengths`."""
    positions = torch.arange(words.shape[1], device=words.device)
    return EncodedBatch(None, words, positions < lengths.to(words.device)[:, None])


def encode_regions(tower: nn.Module, images: Items) -> EncodedBatch:
    """Return images (n, R, d) as an EncodedBatch of their regions, all present. Raises InputError for other items."""
    if not isinstance(images, Tensor) or images.ndim != 3:
        what = tuple(images.shape) if isinstance(images, Tensor) else sorted(images)
        raise InputError(f"images must be region features, (n, regions, d); got {what}")
    regions: Tensor = tower(images)
    return EncodedBatch(None, regions, torch.ones(regions.shape[:2], dtype=torch.bool, device=regions.device))


def require_region_shape(item_shape: ItemShape, encoder: str) -> tuple[int, int]:
    """Return (regions, width) of an image, regions ANY_NUMBER where a file leaves them open.

    Raises InputError for anything else than region features.
    """
    regions, width = item_shape if isinstance(item_shape, tuple) and len(item_shape) == 2 else (0, 0)
    if width < 1 or (regions < 1 and regions != ANY_NUMBER):
        raise InputError(
            f"{encoder} must be given region features, (regions, d); the data set has items of shape {item_shape}. "
            "Use a data set of precomputed regions"
        )
    return regions, width


def require_positive(**numbers: float) -> None:
    """Raise InputError unless all named numbers are above 0 and finite."""
    for name, value in numbers.items():
        if not 0 < value < float("inf"):
            raise InputError(f"{name} must be > 0 and finite; got {value}")
