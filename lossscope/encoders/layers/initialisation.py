"""How linear maps and word vectors of the VSE family start."""

from __future__ import annotations

from torch import nn


def xavier(layer: nn.Linear) -> nn.Linear:
    """The layer with Xavier-uniform weights and zero biases."""
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def embedding(vocabulary_size: int, words: int, word_init: float) -> nn.Embedding:
    """Word vectors of width `words`, uniform in ±word_init."""
    found = nn.Embedding(vocabulary_size, words)
    nn.init.uniform_(found.weight, -word_init, word_init)
    return found
