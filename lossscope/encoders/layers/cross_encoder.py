"""A BERT body whose last layers also look at an image: texts alone, then many pairs of text and image at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

HEAD = 64  # width of an attention head
_EPS = 1e-12


@dataclass(frozen=True)
class BodyPlan:
    """Sizes. layers: in all, the last `fused` of them with attention to an image's tokens, `context` wide.

    words, positions: rows of the embeddings. dropout: after embeddings, attention weights and linear maps.
    init: deviation of linear maps and embeddings at first, normal.
    """

    words: int
    context: int
    width: int = 768
    layers: int = 12
    fused: int = 6
    positions: int = 512
    dropout: float = 0.1
    init: float = 0.02


class Body(nn.Module):
    """Token ids -> states of a text; those and an image's tokens -> the fused state of [CLS].

    Names: embeddings.{word, position, token_type}_embeddings, embeddings.LayerNorm,
    encoder.layer.{i}.{attention, crossattention}.{self.{query, key, value}, output.{dense, LayerNorm}},
    encoder.layer.{i}.{intermediate, output}.dense, encoder.layer.{i}.output.LayerNorm. Every layer is
    LayerNorm(x + f(x)), GELU is exact. Source: Devlin et al. 2019; Zeng et al. 2022 (X-VLM) for the fused layers.
    """

    def __init__(self, plan: BodyPlan) -> None:
        super().__init__()
        self.alone = plan.layers - plan.fused
        self.embeddings = _Embeddings(plan)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(
            _Layer(plan, plan.context if place >= self.alone else 0) for place in range(plan.layers)
        )
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=plan.init)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    @property
    def layers(self) -> list[_Layer]:
        """All of them, first one first."""
        return list(cast("nn.ModuleList", self.encoder.layer))  # type: ignore[arg-type]

    def fusing(self) -> list[nn.Parameter]:
        """Parameters of the fused layers."""
        return [parameter for layer in self.layers[self.alone :] for parameter in layer.parameters()]

    def states(self, ids: Tensor, present: Tensor) -> Tensor:
        """(m, L) ids and (m, L) bool -> (m, L, d) after the layers of texts alone."""
        states: Tensor = self.embeddings(ids)[None]
        for layer in self.layers[: self.alone]:
            states = layer(states, present[None])
        return states[0]

    def seen(self, images: Tensor) -> Tensor:
        """(n, T, C) tokens of images -> (n, F, 2, T, d) keys and values of the F fused layers, once for all texts."""
        return torch.stack([layer.crossattention.read(images) for layer in self.layers[self.alone :]], 1)

    def fused(self, states: Tensor, present: Tensor, seen: Tensor) -> Tensor:
        """(1 or n, m, L, d) states and their (1 or n, m, L) bool, with (n, F, 2, T, d) -> (n, m, d), [CLS] alone.

        One row of states meets every image; n rows meet an image each.
        """
        for place in range(seen.shape[1]):
            last = place == seen.shape[1] - 1
            states = self.layers[self.alone + place](states, present, seen[:, place], last)
        return states[:, :, 0]


class _Embeddings(nn.Module):
    """LayerNorm(word + position + token type 0)."""

    def __init__(self, plan: BodyPlan) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(plan.words, plan.width)
        self.position_embeddings = nn.Embedding(plan.positions, plan.width)
        self.token_type_embeddings = nn.Embedding(2, plan.width)
        self.LayerNorm = nn.LayerNorm(plan.width, eps=_EPS)
        self.dropout = nn.Dropout(plan.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        beside = self.position_embeddings.weight[: ids.shape[1]] + self.token_type_embeddings.weight[0]
        return self.dropout(self.LayerNorm(self.word_embeddings(ids) + beside))  # type: ignore[no-any-return]


class _Layer(nn.Module):
    crossattention: _Attention

    def __init__(self, plan: BodyPlan, context: int) -> None:
        super().__init__()
        self.attention = _Attention(plan.width, plan.width, plan.dropout)
        if context:
            self.crossattention = _Attention(plan.width, context, plan.dropout)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(plan.width, 4 * plan.width)
        self.output = _Output(4 * plan.width, plan.width, plan.dropout)

    def forward(self, states: Tensor, present: Tensor, seen: Tensor | None = None, first: bool = False) -> Tensor:
        """(a, m, L, d) -> the same, or (n, m, L, d) with the (n, 2, T, d) of images; first: only the first token's."""
        asking = states[:, :, :1] if first else states
        inside = present.expand(states.shape[:3]).flatten(0, 1)[:, None, None]
        read = self.attention.read(states.flatten(0, 1))
        x = self.attention(asking.flatten(0, 1), read, inside).unflatten(0, states.shape[:2])
        if seen is not None:
            x = self.crossattention(x.flatten(1, 2), seen).unflatten(1, x.shape[1:3])
        inner = self.intermediate.get_submodule("dense")(x)
        return self.output(nn.functional.gelu(inner), x)  # type: ignore[no-any-return]


class _Attention(nn.Module):
    output: _Output

    def __init__(self, width: int, context: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        maps = {"query": nn.Linear(width, width), "key": nn.Linear(context, width), "value": nn.Linear(context, width)}
        self.add_module("self", nn.ModuleDict(maps))
        self.output = _Output(width, width, dropout)

    def read(self, context: Tensor) -> Tensor:
        """(b, T, C) -> (b, 2, T, d) keys and values."""
        maps = self.get_submodule("self")
        return torch.stack([maps.get_submodule("key")(context), maps.get_submodule("value")(context)], 1)

    def forward(self, asking: Tensor, read: Tensor, allowed: Tensor | None = None) -> Tensor:
        """(1 or b, A, d), (b, 2, T, d), (b, 1, 1, T) bool -> (b, A, d)."""
        query = _heads(self.get_submodule("self.query")(asking)).expand(len(read), -1, -1, -1)
        share = self.dropout if self.training else 0.0
        found = scaled_dot_product_attention(query, _heads(read[:, 0]), _heads(read[:, 1]), allowed, share)
        return self.output(found.transpose(1, 2).flatten(2), asking)  # type: ignore[no-any-return]


class _Output(nn.Module):
    """LayerNorm(x + linear(y))."""

    def __init__(self, inner: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, width)
        self.LayerNorm = nn.LayerNorm(width, eps=_EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        return self.LayerNorm(x + self.dropout(self.dense(y)))  # type: ignore[no-any-return]


def _heads(x: Tensor) -> Tensor:
    """(b, L, d) -> (b, heads, L, 64)."""
    return x.reshape(*x.shape[:2], -1, HEAD).transpose(1, 2)
