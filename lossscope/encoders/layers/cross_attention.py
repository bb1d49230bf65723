"""Cross attention of all images with all captions, in closed form: what SCAN, BFAN and SGRAF share.

The items of one side are the context, those of the other the queries. Letters: k context items of C elements, q query
items of Q elements, width D. All (k, C, Q, q) tensors have the query items last, so that each sum runs over contiguous
memory. The attended vector v_i = Σ_j a_ij c_j is needed for its cosine only, which follows from dot products:
<q_i, v_i> = Σ_j a_ij <q_i, c_j> and |v_i|² = Σ_jl a_ij a_il <c_j, c_l>.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Norm = Literal["clipped_l2norm", "l2norm", "clipped_l1norm", "l1norm", "clipped", "softmax", "no_norm"]
Clip = Literal["leaky", "hard"]
SLOPE = 0.1  # factor of negative dot products under a leaky clip
EPS = 1e-8


def dot_products(context: Tensor, queries: Tensor) -> Tensor:
    """s = <c_j, q_i>: context (k, C, D), queries (q, Q, D) -> (k, C, Q, q), by one matrix product."""
    columns = queries.transpose(0, 1).flatten(0, 1)
    s = context.flatten(0, 1) @ columns.T
    return s.view(*context.shape[:2], queries.shape[1], queries.shape[0])


def attention_weights(
    s: Tensor,
    sharpness: float,
    norm: Norm,
    clip: Clip,
    present_context: Tensor | None = None,
    present_queries: Tensor | None = None,
) -> Tensor:
    """a_ij = softmax_j(sharpness · s̃_ji), (k, C, Q, q), where s̃ is s clipped and normalised over the queries.

    Vectors of absent queries must be zero. Source: Lee et al. 2018, and their published code.

    Args:
        s: dot products, (k, C, Q, q).
        sharpness: λ.
        norm: `l2norm` divides the dot products of a context element with all queries of an item by their length,
            `l1norm` by the sum of their absolute values, `softmax` applies a softmax to them; `clipped` and
            `clipped_...` clip first.
        clip: `hard` sets negative dot products to 0, `leaky` to a tenth of them.
        present_context: (k, C) bool, the context elements that are present; None for all.
        present_queries: (q, Q) bool, the queries that are present; None for all.
    """
    x = _normalise(_clip(s, clip) if norm.startswith("clipped") else s, norm, sharpness, present_queries)
    if present_context is not None:
        x = x.masked_fill(~present_context[:, :, None, None], -torch.inf)
    return x.softmax(1)


def attended_cosines(a: Tensor, s: Tensor, gram: Tensor, lengths: Tensor) -> Tensor:
    """r_i = <q_i, v_i> / max(|q_i| |v_i|, 1e-8), (k, Q, q).

    Args:
        a: attention, (k, C, Q, q).
        s: dot products, (k, C, Q, q).
        gram: (k, C, C) dot products of the context with itself.
        lengths: (Q, q) |q_i|.
    """
    return (a * s).sum(1) / (attended_lengths(a, gram) * lengths).clamp(min=EPS)


def mean_over_queries(r: Tensor, present_queries: Tensor | None) -> Tensor:
    """Return the mean of r (k, Q, q) over the queries that are present, (q, Q) bool, None for all -> (k, q)."""
    if present_queries is None:
        return r.mean(1)
    return r.masked_fill(~present_queries.T, 0).sum(1) / present_queries.sum(1)


def attended_lengths(a: Tensor, gram: Tensor) -> Tensor:
    """|v_i| = √(a_i' G a_i), (k, Q, q), from a (k, C, Q, q) and G (k, C, C); at least 1e-8."""
    products = torch.bmm(gram, a.flatten(2)).view_as(a)
    return _multiply(products, a).sum(1).clamp(min=EPS**2).sqrt()


def gram_matrices(context: Tensor) -> Tensor:
    """G = C C' of each item, (k, C, C)."""
    return torch.bmm(context, context.transpose(1, 2))


def vector_lengths(queries: Tensor) -> Tensor:
    """Return the (Q, q) lengths of the query vectors (q, Q, D)."""
    lengths: Tensor = torch.linalg.vector_norm(queries, dim=2)
    return lengths.T


def _clip(s: Tensor, clip: Clip) -> Tensor:
    return s.relu() if clip == "hard" else functional.leaky_relu(s, SLOPE)


def _normalise(x: Tensor, norm: Norm, sharpness: float, present_queries: Tensor | None) -> Tensor:
    """Return sharpness · x, normalised over the queries."""
    if norm == "softmax":
        if present_queries is not None:
            x = x.masked_fill(~present_queries.T, -torch.inf)
        return x.softmax(2) * sharpness
    if norm.endswith("l2norm"):
        # the clamp keeps the slope of the root finite where all dot products of a context element are 0
        scale = (x * x).sum(2, keepdim=True).clamp(min=EPS**4).sqrt()
    elif norm.endswith("l1norm"):
        scale = x.abs().sum(2, keepdim=True)
    else:
        return x * sharpness
    return x * (sharpness / (scale + EPS))


def _multiply(x: Tensor, y: Tensor) -> Tensor:
    """x y, in the memory of x where no gradient needs it."""
    return x * y if x.requires_grad or y.requires_grad else x.mul_(y)
