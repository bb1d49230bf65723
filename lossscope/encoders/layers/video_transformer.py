"""A transformer over the features of all experts of a video, each with its time and its expert."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

_MASKED = -10_000.0  # added to the attention to absent tokens
_UNKNOWN_TIME = 1  # position of a frame without a time; 0 is for tokens that are no frames
_FIRST_SECOND = 2  # position of second 0


@dataclass(frozen=True)
class VideoTransformerConfig:
    """Sizes of a VideoTransformer."""

    width: int  # of the states
    layers: int  # number of layers
    heads: int  # of a layer
    hidden: int  # width inside a layer
    positions: int  # number of times with an embedding
    types: int  # number of experts with an embedding
    dropout: float  # after embeddings, attention weights and linear maps


class VideoTransformer(nn.Module):
    """Tokens as features + position + type -> states of selected tokens. Layers normalise after each half.

    Weights ~ N(0, 0.02²), biases 0. Names as in the original, with layer_norm in lower case; nothing reads the pooler,
    which exists for its name and is not trained. Source: Gabeur et al. 2020; Devlin et al. 2019.
    """

    def __init__(self, config: VideoTransformerConfig) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        self.encoder = _Layers(config)
        self.pooler = nn.ModuleDict({"dense": nn.Linear(config.width, config.width)})
        self.apply(_initialise)
        self.pooler.requires_grad_(False)

    def forward(self, features: Tensor, positions: Tensor, types: Tensor, mask: Tensor, slots: Tensor) -> Tensor:
        """Return the states of some tokens, (n, M, width).

        Args:
            features: (n, L, width).
            positions: (n, L).
            types: (L,).
            mask: (n, L) bool.
            slots: (M,) the tokens whose states are returned.
        """
        return self.encoder(self.embeddings(features, positions, types), mask, slots)  # type: ignore[no-any-return]


def time_codes(times: Tensor, window: float, positions: int) -> Tensor:
    """⌊t / window⌋ + 2, at most positions − 1, for t seconds; 1 where the time is NaN: any shape, int64."""
    codes = (times / window + _FIRST_SECOND).clamp(0, positions - 1)
    return codes.masked_fill(times.isnan(), _UNKNOWN_TIME).long()


class _Embeddings(nn.Module):
    def __init__(self, config: VideoTransformerConfig) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(config.positions, config.width)
        self.token_type_embeddings = nn.Embedding(config.types, config.width)
        self.layer_norm = nn.LayerNorm(config.width, eps=1e-12)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: Tensor, positions: Tensor, types: Tensor) -> Tensor:
        x = self.position_embeddings(positions) + self.token_type_embeddings(types) + features
        return self.dropout(self.layer_norm(x))  # type: ignore[no-any-return]


class _Layers(nn.Module):
    def __init__(self, config: VideoTransformerConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(config) for _ in range(config.layers))

    def forward(self, states: Tensor, mask: Tensor, slots: Tensor) -> Tensor:
        bias = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, _MASKED)[:, None, None]
        for layer in list(self.layer)[:-1]:
            states = layer(states, states, bias)
        return self.layer[-1](states[:, slots], states, bias)  # type: ignore[no-any-return]


class _Layer(nn.Module):
    """States of some tokens after attention to all tokens."""

    def __init__(self, config: VideoTransformerConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.width, config.hidden)})
        self.output = _ResidualNorm(config.hidden, config.width, config.dropout)

    def forward(self, queries: Tensor, states: Tensor, bias: Tensor) -> Tensor:
        attended = self.attention(queries, states, bias)
        return self.output(gelu(self.intermediate["dense"](attended)), attended)  # type: ignore[no-any-return]


class _Attention(nn.Module):
    def __init__(self, config: VideoTransformerConfig) -> None:
        super().__init__()
        maps = {name: nn.Linear(config.width, config.width) for name in ("query", "key", "value")}
        self.add_module("self", nn.ModuleDict(maps))
        self.output = _ResidualNorm(config.width, config.width, config.dropout)
        self.heads, self.dropout = config.heads, config.dropout

    def forward(self, queries: Tensor, states: Tensor, bias: Tensor) -> Tensor:
        q, k, v = (self._heads(name, x) for name, x in (("query", queries), ("key", states), ("value", states)))
        dropout = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(q, k, v, bias.to(q.dtype), dropout_p=dropout)
        return self.output(attended.transpose(1, 2).flatten(2), queries)  # type: ignore[no-any-return]

    def _heads(self, name: str, x: Tensor) -> Tensor:
        mapped: Tensor = self.get_submodule(f"self.{name}")(x)
        return mapped.view(*mapped.shape[:2], self.heads, -1).transpose(1, 2)


class _ResidualNorm(nn.Module):
    """LayerNorm(x₀ + dropout(W x + b))."""

    def __init__(self, width: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, dim)
        self.layer_norm = nn.LayerNorm(dim, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.layer_norm(residual + self.dropout(self.dense(x)))  # type: ignore[no-any-return]


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
