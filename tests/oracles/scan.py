"""SCAN, one pair and one query at a time, on captions cut to their length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


def regions(state: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """(n, R, d) -> (n, R, D): every region mapped and scaled to unit length."""
    if "image.fc.weight_v" in state:
        v = state["image.fc.weight_v"]
        weight = state["image.fc.weight_g"] * v / math.sqrt(float((v**2).sum()))
    else:
        weight = state["image.fc.weight"]
    mapped = features @ weight.T + state["image.fc.bias"]
    return mapped / (mapped.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8)


def words(state: Mapping[str, Tensor], ids: Sequence[int], rnn: str = "rnn") -> Tensor:
    """(W, D) of one caption alone: the mean of a GRU's two directions (or its one), scaled to unit length."""
    vectors = state["text.embed.weight"][torch.tensor(ids)]
    weights = {name.split(".")[-1]: value for name, value in state.items() if name.startswith(f"text.{rnn}.")}
    both = "weight_ih_l0_reverse" in weights
    gru = nn.GRU(vectors.shape[1], weights["weight_hh_l0"].shape[1], bidirectional=both).to(vectors.dtype)
    gru.load_state_dict(weights)
    with torch.no_grad():
        out, _ = gru(vectors[:, None])
    out = out[:, 0]
    if both:
        half = out.shape[1] // 2
        out = (out[:, :half] + out[:, half:]) / 2
    return out / (out.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8)


def scores(
    images: Tensor,
    captions: Sequence[Tensor],
    direction: str,
    pool: str,
    sharpness: float,
    lambda_lse: float = 6.0,
    norm: str = "clipped_l2norm",
    clip: str = "leaky",
) -> Tensor:
    """S (n, m) from unit vectors: images (n, R, D), each caption (W, D)."""
    S = torch.zeros(len(images), len(captions), dtype=images.dtype)
    for i, image in enumerate(images):
        for j, caption in enumerate(captions):
            query, context = (caption, image) if direction == "t2i" else (image, caption)
            a = attention(query, context, sharpness, norm, clip)
            S[i, j] = pooled(relevances(query, context, a), pool, lambda_lse)
    return S


def attention(query: Tensor, context: Tensor, sharpness: float, norm: str, clip: str) -> Tensor:
    """(Q, C), rows sum to 1."""
    s = torch.zeros(len(query), len(context), dtype=query.dtype)
    for i in range(len(query)):
        for j in range(len(context)):
            s[i, j] = (query[i] * context[j]).sum()
    if norm.startswith("clipped"):
        s = torch.where(s > 0, s, 0 * s if clip == "hard" else 0.1 * s)
    for j in range(len(context)):
        column = s[:, j].clone()
        if norm.endswith("l2norm"):
            s[:, j] = column / (column.pow(2).sum().sqrt() + 1e-8)
        elif norm.endswith("l1norm"):
            s[:, j] = column / (column.abs().sum() + 1e-8)
        elif norm == "softmax":
            s[:, j] = column.exp() / column.exp().sum()
    e = (sharpness * s).exp()
    return e / e.sum(1, keepdim=True)


def relevances(query: Tensor, context: Tensor, a: Tensor) -> Tensor:
    """(Q,) cosines between queries and their attended vectors."""
    result = []
    for i in range(len(query)):
        v = sum(a[i, j] * context[j] for j in range(len(context)))
        result.append((query[i] * v).sum() / (query[i].norm() * v.norm()).clamp(min=1e-8))
    return torch.stack(result)


def pooled(r: Tensor, pool: str, lambda_lse: float) -> Tensor:
    """Pool the r to one number."""
    if pool == "lse":
        return (lambda_lse * r).exp().sum().log() / lambda_lse
    return {"avg": r.mean(), "sum": r.sum(), "max": r.max()}[pool]
