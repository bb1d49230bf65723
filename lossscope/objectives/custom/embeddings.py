"""Vectors behind similarities: some that have a given S, and axes that make S a leaf where a loss computes it."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.errors import InputError

AXES = 1e-6  # length of the extra axes
WIDTH = 16  # of the vectors of `two_ends`


def vectors_of(S: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors with the similarities S, (q, c) -> (q, d), (c, d), from a balanced factorisation.

    Raises InputError where that finds none: not every S is one of unit vectors.
    """
    U, sigma, V = torch.linalg.svd(S.double(), full_matrices=False)
    a, b = U * sigma.sqrt(), V.T * sigma.sqrt()
    long, wide = float(a.norm(dim=1).max()), float(b.norm(dim=1).max())
    if long * wide > 1 + 1e-9:
        raise InputError(
            "a loss on embeddings needs those that S was made of (mask.info queries and candidates); "
            f"no unit vectors were found whose similarities are this S, {tuple(S.shape)}"
        )
    balance = (wide / long) ** 0.5 if long > 0 and wide > 0 else 1.0
    return _filled(a * balance, 0), _filled(b / balance, 1)


def _filled(x: Tensor, place: int) -> Tensor:
    """Rows made unit in two axes of their own, of which the other side uses the other one."""
    rest = (1 - x.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    extra = x.new_zeros(len(x), 2)
    extra[:, place] = rest.squeeze(1)
    return torch.cat([x, extra], 1)


def with_axes(queries: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """An axis for every candidate, short: a query's derivative along axis c is then W[q, c] times its length.

    The lengths of the vectors stay 1 and S changes by a part of 5e-13, so a loss may normalise or not.
    """
    axes = torch.eye(len(candidates), dtype=candidates.dtype, device=candidates.device) * AXES
    wide = torch.cat([queries, queries.new_zeros(len(queries), len(candidates))], 1).requires_grad_()
    return wide, torch.cat([candidates * (1 - AXES**2) ** 0.5, axes], 1)


def two_ends(near: int, far: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Pairs around one direction, hard to tell apart, and up to 3 · near around the opposite one, at about −1."""
    random = torch.Generator().manual_seed(seed)
    centre = torch.cat([torch.ones(near), -torch.ones(far)])[:, None] * torch.eye(1, WIDTH)
    noise = torch.randn(2, 4 * near, WIDTH, generator=random, dtype=torch.float64)[:, : near + far]
    return normalise(centre + 0.15 * noise[0]), normalise(centre + 0.15 * noise[1])
