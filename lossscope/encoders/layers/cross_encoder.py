"""A BERT whose last layers also attend to an image: first texts alone, then many pairs of text and image at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

HEAD_WIDTH = 64  # width of an attention head
_EPS = 1e-12


@dataclass(frozen=True)
class CrossEncoderConfig:
    """Sizes of a cross encoder."""

    words: int  # rows of the word embedding
    context: int  # width of an image's tokens
    width: int = 768  # of the states
    layers: int = 12  # number of layers, fused ones included
    fused: int = 6  # number of last layers that attend to an image's tokens
    positions: int = 512  # rows of the position embedding
    dropout: float = 0.1  # after embeddings, attention weights and linear maps
    init: float = 0.02  # standard deviation of new linear maps and embeddings, normal


class CrossEncoder(nn.Module):
    """Token ids -> states of a text; these states and an image's tokens -> the fused state of [CLS].

    Names: embeddings.{word, position, token_type}_embeddings, embeddings.LayerNorm,
    encoder.layer.{i}.{attention, crossattention}.{self.{query, key, value}, output.{dense, LayerNorm}},
    encoder.layer.{i}.{intermediate, output}.dense, encoder.layer.{i}.output.LayerNorm. Each layer is
    LayerNorm(x + f(x)), GELU is exact. Source: Devlin et al. 2019; Zeng et al. 2022 (X-VLM) for the fused layers.
    """

    def __init__(self, config: CrossEncoderConfig) -> None:
        super().__init__()
        self.text_layers = config.layers - config.fused
        self.embeddings = _Embeddings(config)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(
            _Layer(config, config.context if index >= self.text_layers else 0) for index in range(config.layers)
        )
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=config.init)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    @property
    def layers(self) -> list[_Layer]:
        """All layers, in order."""
        return list(cast("nn.ModuleList", self.encoder.layer))  # type: ignore[arg-type]

    def fused_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the fused layers."""
        return [parameter for layer in self.layers[self.text_layers :] for parameter in layer.parameters()]

    def encode_texts(self, ids: Tensor, present: Tensor) -> Tensor:
        """Return the states after the layers of texts alone: (m, L) ids and (m, L) bool -> (m, L, d)."""
        states: Tensor = self.embeddings(ids)[None]
        for layer in self.layers[: self.text_layers]:
            states = layer(states, present[None])
        return states[0]

    def project_images(self, images: Tensor) -> Tensor:
        """Return keys and values of the F fused layers, once for all texts: (n, T, C) tokens -> (n, F, 2, T, d)."""
        return torch.stack([layer.crossattention.keys_values(images) for layer in self.layers[self.text_layers :]], 1)

    def fuse(self, states: Tensor, present: Tensor, keys_values: Tensor) -> Tensor:
        """Return the fused states of [CLS], (n, m, d).

        Args:
            states: (1 or n, m, L, d) of texts; one row of texts is paired with all images, n rows with one image each.
            present: (1 or n, m, L) bool.
            keys_values: (n, F, 2, T, d) of images.
        """
        for index in range(keys_values.shape[1]):
            last = index == keys_values.shape[1] - 1
            states = self.layers[self.text_layers + index](states, present, keys_values[:, index], last)
        return states[:, :, 0]


class _Embeddings(nn.Module):
    """LayerNorm(word + position + token type 0)."""

    def __init__(self, config: CrossEncoderConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.words, config.width)
        self.position_embeddings = nn.Embedding(config.positions, config.width)
        self.token_type_embeddings = nn.Embedding(2, config.width)
        self.LayerNorm = nn.LayerNorm(config.width, eps=_EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        others = self.position_embeddings.weight[: ids.shape[1]] + self.token_type_embeddings.weight[0]
        return self.dropout(self.LayerNorm(self.word_embeddings(ids) + others))  # type: ignore[no-any-return]


class _Layer(nn.Module):
    crossattention: _Attention

    def __init__(self, config: CrossEncoderConfig, context: int) -> None:
        super().__init__()
        self.attention = _Attention(config.width, config.width, config.dropout)
        if context:
            self.crossattention = _Attention(config.width, context, config.dropout)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(config.width, 4 * config.width)
        self.output = _Output(4 * config.width, config.width, config.dropout)

    def forward(
        self, states: Tensor, present: Tensor, keys_values: Tensor | None = None, first: bool = False
    ) -> Tensor:
        """Return (a, m, L, d) states, or (n, m, L, d) with an image.

        Args:
            states: (a, m, L, d).
            present: (a, m, L) bool.
            keys_values: (n, 2, T, d) of images, for a fused layer.
            first: compute the state of the first token only.
        """
        queries = states[:, :, :1] if first else states
        allowed = present.expand(states.shape[:3]).flatten(0, 1)[:, None, None]
        text_keys_values = self.attention.keys_values(states.flatten(0, 1))
        x = self.attention(queries.flatten(0, 1), text_keys_values, allowed).unflatten(0, states.shape[:2])
        if keys_values is not None:
            x = self.crossattention(x.flatten(1, 2), keys_values).unflatten(1, x.shape[1:3])
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

    def keys_values(self, context: Tensor) -> Tensor:
        """Return keys and values: (b, T, C) -> (b, 2, T, d)."""
        maps = self.get_submodule("self")
        return torch.stack([maps.get_submodule("key")(context), maps.get_submodule("value")(context)], 1)

    def forward(self, queries: Tensor, keys_values: Tensor, allowed: Tensor | None = None) -> Tensor:
        """(1 or b, A, d) queries, (b, 2, T, d) keys and values, (b, 1, 1, T) bool -> (b, A, d)."""
        query = _split_heads(self.get_submodule("self.query")(queries)).expand(len(keys_values), -1, -1, -1)
        dropout = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(
            query, _split_heads(keys_values[:, 0]), _split_heads(keys_values[:, 1]), allowed, dropout
        )
        return self.output(attended.transpose(1, 2).flatten(2), queries)  # type: ignore[no-any-return]


class _Output(nn.Module):
    """LayerNorm(x + linear(y))."""

    def __init__(self, inner: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, width)
        self.LayerNorm = nn.LayerNorm(width, eps=_EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        return self.LayerNorm(x + self.dropout(self.dense(y)))  # type: ignore[no-any-return]


def _split_heads(x: Tensor) -> Tensor:
    """(b, L, d) -> (b, heads, L, 64)."""
    return x.reshape(*x.shape[:2], -1, HEAD_WIDTH).transpose(1, 2)
