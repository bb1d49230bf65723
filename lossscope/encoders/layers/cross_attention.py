"""Cross attention of every image with every caption, in closed form: what SCAN, BFAN and SGRAF have in common.

One side's items are the context, the other's the queries. Letters: k context items of C elements, q query items of Q
elements, width D. All (k, C, Q, q) tensors keep the query items last, so that every sum runs over whole rows of memory.
The attended vector v_i = Σ_j a_ij c_j is needed for its cosine only, and that follows from the dot products alone:
<q_i, v_i> = Σ_j a_ij <q_i, c_j> and |v_i|² = Σ_jl a_ij a_il <c_j, c_l>.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Norm = Literal["clipped_l2norm", "l2norm", "clipped_l1norm", "l1norm", "clipped", "softmax", "no_norm"]
Clip = Literal["leaky", "hard"]
SLOPE = 0.1  # of the negative dot products that a leaky clip lets through
EPS = 1e-8


def dots(context: Tensor, queries: Tensor) -> Tensor:
    """s = <c_j, q_i>: context (k, C, D), queries (q, Q, D) -> (k, C, Q, q), one matrix product."""
    columns = queries.transpose(0, 1).flatten(0, 1)
    found = context.flatten(0, 1) @ columns.T
    return found.view(*context.shape[:2], queries.shape[1], queries.shape[0])


def attention(
    s: Tensor, sharpness: float, norm: Norm, clip: Clip, present: Tensor | None = None, asked: Tensor | None = None
) -> Tensor:
    """a_ij = softmax_j(sharpness · s̃_ji), (k, C, Q, q), where s̃ is s clipped and normalised over the queries.

    norm: `l2norm` divides what one context element gives all queries of an item by its length, `l1norm` by its sum of
    absolute values, `softmax` makes it a softmax; `clipped` and `clipped_...` clip first. present: (k, C) bool of the
    context elements that are there, asked: (q, Q) bool of the queries; None for all. Vectors of absent queries must be
    zero. Source: Lee et al. 2018, and their published code.
    """
    x = _normalised(_clipped(s, clip) if norm.startswith("clipped") else s, norm, sharpness, asked)
    if present is not None:
        x = x.masked_fill(~present[:, :, None, None], -torch.inf)
    return x.softmax(1)


def cosines(a: Tensor, s: Tensor, gram: Tensor, lengths: Tensor) -> Tensor:
    """r_i = <q_i, v_i> / max(|q_i| |v_i|, 1e-8), (k, Q, q).

    a, s: (k, C, Q, q); gram: (k, C, C) dot products of the context with itself; lengths: (Q, q) |q_i|.
    """
    return (a * s).sum(1) / (attended_lengths(a, gram) * lengths).clamp(min=EPS)


def mean(r: Tensor, asked: Tensor | None) -> Tensor:
    """Mean over the queries that are there: r (k, Q, q), asked (q, Q) bool, None for all -> (k, q)."""
    if asked is None:
        return r.mean(1)
    return r.masked_fill(~asked.T, 0).sum(1) / asked.sum(1)


def attended_lengths(a: Tensor, gram: Tensor) -> Tensor:
    """|v_i| = √(a_i' G a_i), (k, Q, q), from a (k, C, Q, q) and G (k, C, C); at least 1e-8."""
    turned = torch.bmm(gram, a.flatten(2)).view_as(a)
    return _times(turned, a).sum(1).clamp(min=EPS**2).sqrt()


def gram(context: Tensor) -> Tensor:
    """G = C C' of each item, (k, C, C)."""
    return torch.bmm(context, context.transpose(1, 2))


def lengths_of(queries: Tensor) -> Tensor:
    """(Q, q) lengths of the query vectors (q, Q, D)."""
    found: Tensor = torch.linalg.vector_norm(queries, dim=2)
    return found.T


def _clipped(s: Tensor, clip: Clip) -> Tensor:
    return s.relu() if clip == "hard" else functional.leaky_relu(s, SLOPE)


def _normalised(x: Tensor, norm: Norm, sharpness: float, asked: Tensor | None) -> Tensor:
    """sharpness · x, normalised over the queries."""
    if norm == "softmax":
        if asked is not None:
            x = x.masked_fill(~asked.T, -torch.inf)
        return x.softmax(2) * sharpness
    if norm.endswith("l2norm"):
        # the tiny number keeps the slope of the root finite where a context element has no similarity at all
        scale = (x * x).sum(2, keepdim=True).clamp(min=EPS**4).sqrt()
    elif norm.endswith("l1norm"):
        scale = x.abs().sum(2, keepdim=True)
    else:
        return x * sharpness
    return x * (sharpness / (scale + EPS))


def _times(x: Tensor, y: Tensor) -> Tensor:
    """x y, in the place of x where no gradient needs it."""
    return x * y if x.requires_grad or y.requires_grad else x.mul_(y)
