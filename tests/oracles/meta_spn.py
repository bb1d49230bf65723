"""Meta-SPN, one query at a time: the network as loops over its layers, its two weights being constants."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

Array = Any
MORE = ["meta_spn:margin=0.5", "meta_spn:hidden=4,net=tests/data/meta_spn_net.safetensors"]


def two_weights(s_pos: float, s_neg: float, net: Path | None) -> tuple[float, float]:
    """(ω₊, ω₋); an untrained network gives 1 and 1, whatever its first layer is."""
    if net is None:
        return 1.0, 1.0
    layers = load_file(net)
    inside = [
        max(0.0, float(row[0]) * s_pos + float(row[1]) * s_neg + float(b))
        for row, b in zip(layers["0.weight"], layers["0.bias"], strict=True)
    ]
    out = [
        sum(float(w) * x for w, x in zip(row, inside, strict=True)) + float(b)
        for row, b in zip(layers["1.weight"], layers["1.bias"], strict=True)
    ]
    return 2 / (1 + math.exp(-out[0])), 2 / (1 + math.exp(-out[1]))


def terms(S: Array, match: Array, valid: Array, margin: float, net: Path | None) -> tuple[Array, Array]:
    loss, W = np.zeros(len(S)), np.zeros_like(S)
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if not positives or not negatives:
            continue
        p, n = positives[0], max(negatives, key=lambda c: (S[q, c], -c))
        if margin + S[q, n] - S[q, p] > 0:
            pull, push = two_weights(S[q, p], S[q, n], net)
            loss[q] = push * S[q, n] - pull * S[q, p]
            W[q, n], W[q, p] = push, -pull
    return loss, W


def values(S: Array, match: Array, valid: Array, margin: float = 0.2, net: Path | None = None, **_: Any) -> Array:
    return terms(S, match, valid, margin, net)[0]


def weights(S: Array, match: Array, valid: Array, margin: float = 0.2, net: Path | None = None, **_: Any) -> Array:
    return terms(S, match, valid, margin, net)[1]


def counted_weights(
    S: Array, match: Array, valid: Array, eps: float, convention: str, direction: str, **options: Any
) -> tuple[Array, Array]:
    """Negatives whose |W| is above eps, and the sum of their weights."""
    W = np.abs(weights(S, match, valid, **options))
    high = np.where((eps < W) & ~match, W, 0)
    return (high > 0).sum(1), high.sum(1)
