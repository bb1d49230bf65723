"""Initial values of linear maps and word vectors of the VSE family."""

from __future__ import annotations

from torch import nn


def init_xavier(layer: nn.Linear) -> nn.Linear:
    """Return the layer with Xavier-uniform weights and zero biases."""
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def build_embedding(vocabulary_size: int, words: int, word_init: float) -> nn.Embedding:
    """Return word vectors of width `words`, uniform in ±word_init."""
    embedding = nn.Embedding(vocabulary_size, words)
    nn.init.uniform_(embedding.weight, -word_init, word_init)
    return embedding
