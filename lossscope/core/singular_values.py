"""Singular values, and over how many directions they are distributed."""

from __future__ import annotations

import torch
from torch import Tensor


def singular_values(products: Tensor) -> Tensor:
    """(k, n) singular values of k matrices X, ascending, from their products X' X or X X', (k, n, n) in float64.

    Those that may be rounding errors (σ² ≤ max σ² · n · 2⁻⁵²) are 0.
    """
    squares: Tensor = torch.linalg.eigvalsh(products)
    floor = squares[:, -1:] * squares.shape[1] * torch.finfo(squares.dtype).eps
    return squares.where(squares > floor, 0.0).sqrt()


def effective_rank(sigma: Tensor) -> Tensor:
    """exp(−Σ p_i ln p_i), p_i = σ_i / Σ σ, (k,) of (k, n) singular values; NaN where all are 0.

    Source: Roy & Vetterli 2007.
    """
    p = sigma / sigma.sum(1, keepdim=True)
    entropy: Tensor = torch.special.entr(p).sum(1)
    return entropy.exp()
