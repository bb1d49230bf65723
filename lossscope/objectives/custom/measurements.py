"""What a user's loss does, measured on a few pairs: does it average, which directions has it, is it a function of S?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lossscope.core.types import DIRECTIONS, CountedDirection

from .embeddings import opposite_pairs

GradientOfPairs = Callable[[Tensor, Tensor], Tensor]  # images (b, d), captions (b, d) -> dF/dS (b, b)
ValueOfPairs = Callable[[Tensor, Tensor], Tensor]  # images (b, d), captions (b, d) -> F, () or (b,)
_SAME = 1e-7  # relative difference of float64 numbers that are equal but for rounding
_PAIRS = 6


def describe_misfit(value: ValueOfPairs, gradient: GradientOfPairs, on_embeddings: bool) -> str | None:
    """Say why dF/dS of images against captions does not describe a loss; None where it does.

    Args:
        value: of the loss.
        gradient: of the loss.
        on_embeddings: whether it takes embeddings, and so may use more than S.
    """
    if not is_deterministic(value):
        return "two calls with one input give two values. Switch off its dropout or other random parts"
    if on_embeddings and depends_on_coordinates(value):
        return "it changes when all embeddings are rotated together, which leaves every similarity as it is"
    if on_embeddings and depends_on_one_side(value):
        return (
            "it also uses similarities of images among themselves, or of captions, as SimCLR over 2N views does, and W "
            "of images against captions would leave these out"
        )
    if not pulls_pairs(gradient):
        return (
            "it does not pull pair i, which is on the diagonal of S (b, b); SimCLR over 2N views, which has its "
            "positives elsewhere, is none"
        )
    return None


def measure_average(gradient: GradientOfPairs) -> int:
    """Return the power of 1/B in F: 1 for a mean over the B pairs, 2 over all B x B entries, else 0.

    n added far-away pairs halve dF/dS of the first n pairs, and 3 n quarter it, or both squared.
    """
    alone = gradient(*opposite_pairs(_PAIRS, 0)).abs().sum()
    ratios = []
    for times in (1, 3):
        W = gradient(*opposite_pairs(_PAIRS, _PAIRS * times))
        ratios.append(float(W[:_PAIRS, :_PAIRS].abs().sum() / alone))
    if 0.3 < ratios[0] < 0.65 and 0.1 < ratios[1] < 0.35:
        return 1
    return 2 if 0.15 < ratios[0] <= 0.3 and ratios[1] <= 0.1 else 0


def measure_directions(gradient: GradientOfPairs) -> tuple[CountedDirection, ...]:
    """Return `i2t` where row q of dF/dS depends on row q of S only, `t2i` where columns do so; else `both`.

    One item is replaced by another vector, its opposite and its own partner: entries of other rows (or columns) change
    where the loss looks across them. A loss of one pair at a time is of both directions, each with a gradient.
    """
    images, captions = opposite_pairs(_PAIRS, 0)
    rows = all(_others_stay(gradient, images, captions, other, 0) for other in _replacements(images, captions))
    columns = all(_others_stay(gradient, images, captions, other, 1) for other in _replacements(captions, images))
    if rows and columns:
        return DIRECTIONS
    return ("i2t",) if rows else ("t2i",) if columns else ("both",)


def pulls_pairs(gradient: GradientOfPairs) -> bool:
    """Whether dF/dS is negative anywhere on the diagonal, for pairs that are hard to distinguish."""
    return bool((gradient(*opposite_pairs(_PAIRS, 0)).diagonal() < 0).any())


def is_deterministic(value: ValueOfPairs) -> bool:
    """Whether two calls with one input give one value."""
    pairs = opposite_pairs(_PAIRS, 0)
    return _equal(value(*pairs), value(*pairs))


def depends_on_coordinates(value: ValueOfPairs) -> bool:
    """Whether F differs between vectors and the same vectors rotated together."""
    images, captions = opposite_pairs(_PAIRS, 0)
    random = torch.Generator().manual_seed(1)
    rotation = torch.linalg.qr(torch.randn(images.shape[1], images.shape[1], generator=random, dtype=images.dtype))[0]
    return not _equal(value(images, captions), value(images @ rotation, captions @ rotation))


def depends_on_one_side(value: ValueOfPairs) -> bool:
    """Whether F differs between unit vectors whose S is the same, but not their similarities within each side."""
    images, captions = (x * 0.5**0.5 for x in opposite_pairs(_PAIRS, 0))
    shared = torch.zeros(_PAIRS, _PAIRS, dtype=images.dtype)
    shared[:, 0] = 1
    values = [
        value(_append(images, own, torch.zeros_like(own)), _append(captions, torch.zeros_like(own), own))
        for own in (shared, torch.eye(_PAIRS, dtype=images.dtype))
    ]
    return not _equal(*values)


def _append(vectors: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Append axes that make vectors of length √½ unit vectors again."""
    return torch.cat([vectors, first * 0.5**0.5, second * 0.5**0.5], 1)


def _replacements(side: Tensor, partners: Tensor) -> list[Tensor]:
    """Return copies of one side in which its last item is another vector."""
    copies = []
    for vector in (torch.roll(side[-1], 1), -side[-1], partners[-1]):
        copies.append(side.clone())
        copies[-1][-1] = vector
    return copies


def _others_stay(gradient: GradientOfPairs, images: Tensor, captions: Tensor, other: Tensor, side: int) -> bool:
    """Whether dF/dS of all but the last item of a side stays as it is when that item is another.

    Args:
        gradient: of the loss.
        images: (b, d).
        captions: (b, d).
        other: (b, d), the side with another last item.
        side: 0 where that is the images, the rows of dF/dS; 1 where it is the captions, its columns.
    """
    before, after = gradient(images, captions), gradient(*((other, captions) if side == 0 else (images, other)))
    kept = slice(None, -1)
    return _equal(before[kept], after[kept]) if side == 0 else _equal(before[:, kept], after[:, kept])


def _equal(a: Tensor, b: Tensor) -> bool:
    scale = float(torch.maximum(a.abs().max(), b.abs().max()))
    return a.shape == b.shape and float((a - b).abs().max()) <= _SAME * scale
