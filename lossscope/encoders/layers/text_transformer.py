"""A small transformer over words, averaged over the words of each text."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .initialisation import build_embedding


class TextTransformer(nn.Module):
    """mean over words of transformer(word vectors + positions), projected: (n, L) ids, (n,) lengths -> (n, dim).

    Layers normalise first; positions are sines, so that a text may have any length. Source: Vaswani et al. 2017.

    Args:
        vocabulary_size: number of ids.
        width: of word vectors and layers.
        dim: of the result.
        layers: number of layers.
        heads: of the attention.
    """

    def __init__(self, vocabulary_size: int, width: int, dim: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = build_embedding(vocabulary_size, width, 1.0)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.project = nn.Linear(width, dim)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return one vector a text."""
        padding = torch.arange(ids.shape[1])[None, :] >= lengths[:, None]
        padding = padding.to(ids.device)
        words = self.embed(ids)
        states = self.layers(words + _positions(ids.shape[1], words), src_key_padding_mask=padding)
        present = (~padding)[:, :, None].to(states.dtype)
        mean: Tensor = self.project((states * present).sum(1) / present.sum(1))
        return mean


def _positions(length: int, like: Tensor) -> Tensor:
    """(L, width) sines and cosines of the places of words."""
    width = like.shape[-1]
    rates = torch.exp(torch.arange(0, width, 2, device=like.device) * (-math.log(10_000.0) / width))
    angles = torch.arange(length, device=like.device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(like.dtype)
