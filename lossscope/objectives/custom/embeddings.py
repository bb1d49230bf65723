"""Embeddings for losses that compute S themselves: vectors with a given S, and axes that make dF/dS a gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.errors import InputError

AXES = 1e-6  # length of the extra axes
WIDTH = 16  # of the vectors of `opposite_pairs`


def vectors_with_similarities(S: Tensor, label: str = "a loss on embeddings") -> tuple[Tensor, Tensor]:
    """Return unit vectors (q, d) and (c, d) whose similarities are S (q, c), from a balanced factorisation.

    Args:
        S: (q, c).
        label: name of the loss that takes embeddings, for the message.

    Raises:
        InputError: where it gives none: not every S is that of unit vectors.
    """
    U, sigma, V = torch.linalg.svd(S.double(), full_matrices=False)
    a, b = U * sigma.sqrt(), V.T * sigma.sqrt()
    long, wide = float(a.norm(dim=1).max()), float(b.norm(dim=1).max())
    if long * wide > 1 + 1e-9:
        raise InputError(
            f"{label} takes embeddings, and got S alone, {tuple(S.shape)}: lossscope found no unit vectors "
            "with these similarities. Give the embeddings behind S. In a file write `images` and `captions` "
            "in place of `similarity`. In Python write watch(images=..., captions=...), or mask.info queries "
            "and candidates. Or write the loss as a function of S, def loss(S)"
        )
    balance = (wide / long) ** 0.5 if long > 0 and wide > 0 else 1.0
    return _append_unit_axes(a * balance, 0), _append_unit_axes(b / balance, 1)


def _append_unit_axes(x: Tensor, axis: int) -> Tensor:
    """Append two axes that make rows of unit length; queries and candidates use different ones."""
    rest = (1 - x.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    extra = x.new_zeros(len(x), 2)
    extra[:, axis] = rest.squeeze(1)
    return torch.cat([x, extra], 1)


def append_axes(queries: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Append a short axis for every candidate: the derivative of query q along axis c is W[q, c] times AXES.

    Vectors stay of unit length and S changes by 5e-13 relative to itself, so the loss may normalise them or not.
    """
    axes = torch.eye(len(candidates), dtype=candidates.dtype, device=candidates.device) * AXES
    wide = torch.cat([queries, queries.new_zeros(len(queries), len(candidates))], 1).requires_grad_()
    return wide, torch.cat([candidates * (1 - AXES**2) ** 0.5, axes], 1)


def opposite_pairs(near: int, far: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return pairs (n, d), (n, d) around one direction, and pairs around the opposite one, at similarities of about −1.

    Args:
        near: number of pairs around the first direction, which are hard to distinguish.
        far: number of pairs around the opposite direction, at most 3 · near.
        seed: of the noise.
    """
    random = torch.Generator().manual_seed(seed)
    centre = torch.cat([torch.ones(near), -torch.ones(far)])[:, None] * torch.eye(1, WIDTH)
    noise = torch.randn(2, 4 * near, WIDTH, generator=random, dtype=torch.float64)[:, : near + far]
    return normalise(centre + 0.15 * noise[0]), normalise(centre + 0.15 * noise[1])
