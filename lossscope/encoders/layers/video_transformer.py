"""A transformer over the features of all experts of a video, each with its time and its expert."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

_AWAY = -10_000.0  # added to the attention towards what is not there
_UNKNOWN = 1  # position of a frame whose time is not known; 0 is for what stands for no frame
_FIRST = 2  # position of second 0


@dataclass(frozen=True)
class VideoPlan:
    """Width, layers, heads, width inside a layer; positions (times) and types (experts) that have an embedding."""

    width: int
    layers: int
    heads: int
    hidden: int
    positions: int
    types: int
    dropout: float


class VideoTransformer(nn.Module):
    """Tokens as features + position + type -> states of the tokens asked for. Layers normalise behind each half.

    Weights ~ N(0, 0.02²), biases 0. Names as in the original, with layer_norm in small letters; nothing reads the
    pooler, which stays for its name and does not train. Source: Gabeur et al. 2020; Devlin et al. 2019.
    """

    def __init__(self, plan: VideoPlan) -> None:
        super().__init__()
        self.embeddings = _Embeddings(plan)
        self.encoder = _Layers(plan)
        self.pooler = nn.ModuleDict({"dense": nn.Linear(plan.width, plan.width)})
        self.apply(_start)
        self.pooler.requires_grad_(False)

    def forward(self, features: Tensor, positions: Tensor, types: Tensor, mask: Tensor, asked: Tensor) -> Tensor:
        """(n, L, width) features, (n, L) positions, (L,) types, (n, L) bool, (M,) places -> (n, M, width)."""
        return self.encoder(self.embeddings(features, positions, types), mask, asked)  # type: ignore[no-any-return]


def time_codes(times: Tensor, window: float, positions: int) -> Tensor:
    """⌊t / window⌋ + 2, at most positions − 1, for t seconds; 1 where the time is NaN: any shape, int64."""
    codes = (times / window + _FIRST).clamp(0, positions - 1)
    return codes.masked_fill(times.isnan(), _UNKNOWN).long()


class _Embeddings(nn.Module):
    def __init__(self, plan: VideoPlan) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(plan.positions, plan.width)
        self.token_type_embeddings = nn.Embedding(plan.types, plan.width)
        self.layer_norm = nn.LayerNorm(plan.width, eps=1e-12)
        self.dropout = nn.Dropout(plan.dropout)

    def forward(self, features: Tensor, positions: Tensor, types: Tensor) -> Tensor:
        x = self.position_embeddings(positions) + self.token_type_embeddings(types) + features
        return self.dropout(self.layer_norm(x))  # type: ignore[no-any-return]


class _Layers(nn.Module):
    def __init__(self, plan: VideoPlan) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(plan) for _ in range(plan.layers))

    def forward(self, states: Tensor, mask: Tensor, asked: Tensor) -> Tensor:
        away = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, _AWAY)[:, None, None]
        for layer in list(self.layer)[:-1]:
            states = layer(states, states, away)
        return self.layer[-1](states[:, asked], states, away)  # type: ignore[no-any-return]


class _Layer(nn.Module):
    """States of some tokens, after they have looked at all."""

    def __init__(self, plan: VideoPlan) -> None:
        super().__init__()
        self.attention = _Attention(plan)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(plan.width, plan.hidden)})
        self.output = _Added(plan.hidden, plan.width, plan.dropout)

    def forward(self, some: Tensor, states: Tensor, away: Tensor) -> Tensor:
        seen = self.attention(some, states, away)
        return self.output(gelu(self.intermediate["dense"](seen)), seen)  # type: ignore[no-any-return]


class _Attention(nn.Module):
    def __init__(self, plan: VideoPlan) -> None:
        super().__init__()
        maps = {name: nn.Linear(plan.width, plan.width) for name in ("query", "key", "value")}
        self.add_module("self", nn.ModuleDict(maps))
        self.output = _Added(plan.width, plan.width, plan.dropout)
        self.heads, self.dropout = plan.heads, plan.dropout

    def forward(self, some: Tensor, states: Tensor, away: Tensor) -> Tensor:
        q, k, v = (self._heads(name, x) for name, x in (("query", some), ("key", states), ("value", states)))
        dropped = self.dropout if self.training else 0.0
        seen = scaled_dot_product_attention(q, k, v, away.to(q.dtype), dropout_p=dropped)
        return self.output(seen.transpose(1, 2).flatten(2), some)  # type: ignore[no-any-return]

    def _heads(self, name: str, x: Tensor) -> Tensor:
        mapped: Tensor = self.get_submodule(f"self.{name}")(x)
        return mapped.view(*mapped.shape[:2], self.heads, -1).transpose(1, 2)


class _Added(nn.Module):
    """LayerNorm(x₀ + dropout(W x + b))."""

    def __init__(self, width: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(width, dim)
        self.layer_norm = nn.LayerNorm(dim, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        return self.layer_norm(before + self.dropout(self.dense(x)))  # type: ignore[no-any-return]


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
