"""What a user's loss does, measured on a few pairs: does it average, which directions has it, is it a function of S?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.types import DIRECTIONS, CountedDirection
from lossscope.errors import InputError

from .embeddings import opposite_pairs

TRIAL_PAIRS = (6, 16, 64)  # of the batches that a loss is measured on: the first number that it runs on
_ROUNDING = {torch.float64: 1e-7, torch.float32: 1e-4}  # relative difference of numbers equal but for rounding
_ROUNDING_OF_HALF = 2e-2


@dataclass(frozen=True)
class Trial:
    """A loss as it is measured, on embeddings of pairs: images (b, d), captions (b, d)."""

    value: Callable[[Tensor, Tensor], Tensor]  # -> F, () or (b,)
    values_of_one_copy: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # -> F of two calls in a row
    gradient: Callable[[Tensor, Tensor], Tensor]  # -> dF/dS (b, b)
    pairs: int = TRIAL_PAIRS[0]  # b of the smallest batch
    dtype: torch.dtype = torch.float64  # that F is computed in

    def batch(self, far: int = 0) -> tuple[Tensor, Tensor]:
        """Return pairs that are hard to distinguish, and `far` times as many around the opposite direction."""
        return opposite_pairs(self.pairs, self.pairs * far)

    def equal(self, a: Tensor, b: Tensor) -> bool:
        """Whether numbers are equal but for rounding."""
        scale = float(torch.maximum(a.abs().max(), b.abs().max()))
        rounding = _ROUNDING.get(self.dtype, _ROUNDING_OF_HALF)
        return a.shape == b.shape and float((a - b).abs().max()) <= rounding * scale


VIEWS = (
    "Take all items as one set: --sampling views, in Python watch(embeddings=torch.stack([a, b], 1)). To check it as a "
    "step: lossscope check --trainer ./FILE.py:step, of def step(queries, candidates), which returns the loss"
)
"""How a loss of two views is counted."""


def describe_misfit(trial: Trial, on_embeddings: bool, one_set: bool = False) -> str | None:
    """Say why dF/dS of images against captions, or of all items of one set, does not describe a loss; None if it does.

    Args:
        trial: the loss.
        on_embeddings: whether it takes embeddings, and so may use more than S.
        one_set: whether S has the similarities within each side, too.
    """
    if not is_deterministic(trial):
        return "two calls with one input give two values. Switch off its dropout or other random parts"
    if on_embeddings and keeps_memory(trial):
        return (
            "a second call with one input gives another value than the first, as it keeps a queue or an average of "
            "earlier batches, which W of one batch would leave out. Switch that memory off, for a queue: length 0"
        )
    mistake = describe_mistake(trial) if on_embeddings else None
    if mistake is not None:
        return mistake
    if on_embeddings and depends_on_coordinates(trial):
        return (
            "it changes when all embeddings are rotated together, which leaves every similarity as it is. Distances "
            "along single axes do so, and a layer or stored vectors of its own"
        )
    if one_set:
        return None
    if on_embeddings and depends_on_one_side(trial):
        return (
            "it also uses similarities of images among themselves, or of captions, as SimCLR over 2N views does, and W "
            f"of images against captions would leave these out. {VIEWS}"
        )
    return None if pulls_pairs(trial) else _why_not_pulled(trial, on_embeddings)


def describe_mistake(trial: Trial) -> str | None:
    """Say which mistake makes a loss of embeddings none of S; None where it is none of those that are known."""
    if compares_within_sides(trial):
        value = float(trial.value(*trial.batch()).detach().mean())
        return (
            f"it compares each view with itself and never with the other, and costs {value:.3g} whichever captions "
            "belong to the images. Multiply one view by the other, images @ captions.T"
        )
    turns = depends_on_coordinates(trial)
    sides = [name for side, name in enumerate(("images", "captions")) if turns and normalises_dimensions(trial, side)]
    if sides:
        return (
            f"{' and '.join(sides)} are normalised along the wrong axis, each dimension over the batch; it must be "
            "each row, normalize(x, dim=1)"
        )
    return None


def _why_not_pulled(trial: Trial, on_embeddings: bool) -> str:
    """Say why W does not pull pair i: a loss of distances pushes it, another has its positives elsewhere."""
    if not on_embeddings and bool((trial.gradient(*trial.batch()).diagonal() > 0).any()):
        return (
            "it pushes pair i apart: dF/dS is positive on the diagonal, as of a loss of distances. Give it distances, "
            "`def loss(S): return your_loss(1 - S)`, or 2 - 2 * S for squared Euclidean ones"
        )
    return (
        "it does not pull pair i, which is on the diagonal of S (b, b); SimCLR over 2N views has its positives "
        f"elsewhere. {VIEWS}"
    )


def measure_average(trial: Trial) -> int:
    """Return the power of 1/B in F: 1 for a mean over the B pairs, 2 over all B x B entries, else 0.

    n added far-away pairs halve dF/dS of the first n pairs, and 3 n quarter it, or both squared.
    """
    alone, near = trial.gradient(*trial.batch()).abs().sum(), slice(trial.pairs)
    ratios = [float(trial.gradient(*trial.batch(far))[near, near].abs().sum() / alone) for far in (1, 3)]
    if 0.3 < ratios[0] < 0.65 and 0.1 < ratios[1] < 0.35:
        return 1
    return 2 if 0.15 < ratios[0] <= 0.3 and ratios[1] <= 0.1 else 0


def measure_directions(trial: Trial) -> tuple[CountedDirection, ...]:
    """Return `i2t` where row q of dF/dS depends on row q of S only, `t2i` where columns do so; else `both`.

    One item is replaced by another vector, its opposite and its own partner: entries of other rows (or columns) change
    where the loss looks across them. A loss of one pair at a time is of both directions, each with a gradient.
    """
    images, captions = trial.batch()
    rows = all(_others_stay(trial, images, captions, other, 0) for other in _replacements(images, captions))
    columns = all(_others_stay(trial, images, captions, other, 1) for other in _replacements(captions, images))
    if rows and columns:
        return DIRECTIONS
    return ("i2t",) if rows else ("t2i",) if columns else ("both",)


def pulls_pairs(trial: Trial) -> bool:
    """Whether dF/dS is negative anywhere on the diagonal, for pairs that are hard to distinguish."""
    return bool((trial.gradient(*trial.batch()).diagonal() < 0).any())


def is_deterministic(trial: Trial) -> bool:
    """Whether one call each of two copies with one input gives one value."""
    pairs = trial.batch()
    return trial.equal(trial.value(*pairs), trial.value(*pairs))


def keeps_memory(trial: Trial) -> bool:
    """Whether a second call of one copy gives another value than the first."""
    return not trial.equal(*trial.values_of_one_copy(*trial.batch()))


def depends_on_coordinates(trial: Trial) -> bool:
    """Whether F differs between vectors and the same vectors rotated together."""
    images, captions = trial.batch()
    rotation = _rotation(images)
    return not trial.equal(trial.value(images, captions), trial.value(images @ rotation, captions @ rotation))


def compares_within_sides(trial: Trial) -> bool:
    """Whether F, no constant, is the same where one side is rotated, which keeps similarities within it alone."""
    images, captions = trial.batch()
    value, rotation = trial.value(images, captions), _rotation(images)
    others = [torch.cat([-x[:1], x[1:]]) for x in (images, captions)]
    turned = (trial.value(images @ rotation, captions), trial.value(images, captions @ rotation))
    return all(trial.equal(value, each) for each in turned) and not trial.equal(value, trial.value(*others))


def normalises_dimensions(trial: Trial, side: int) -> bool:
    """Whether F does not see how long a dimension is over the batch, and does see its mean, of one side.

    Args:
        trial: the loss.
        side: 0 for the images, 1 for the captions.
    """
    sides = trial.batch()
    value = trial.value(*sides)
    lengths = torch.linspace(0.5, 2.0, sides[side].shape[1], dtype=sides[side].dtype)
    scaled, moved = ([*sides], [*sides])
    scaled[side], moved[side] = sides[side] * lengths, sides[side] + lengths
    try:
        return trial.equal(value, trial.value(*scaled)) and not trial.equal(value, trial.value(*moved))
    except InputError:  # it refuses what is not of unit length
        return False


def _rotation(x: Tensor) -> Tensor:
    """Return an orthogonal matrix (d, d) for vectors (n, d)."""
    random = torch.Generator().manual_seed(1)
    rotation: Tensor = torch.linalg.qr(torch.randn(x.shape[1], x.shape[1], generator=random, dtype=x.dtype))[0]
    return rotation


def depends_on_one_side(trial: Trial) -> bool:
    """Whether F differs between unit vectors whose S is the same, but not their similarities within each side."""
    images, captions = (x * 0.5**0.5 for x in trial.batch())
    shared = torch.zeros(trial.pairs, trial.pairs, dtype=images.dtype)
    shared[:, 0] = 1
    values = [
        trial.value(_append(images, axes, torch.zeros_like(axes)), _append(captions, torch.zeros_like(axes), axes))
        for axes in (shared, torch.eye(trial.pairs, dtype=images.dtype))
    ]
    return not trial.equal(*values)


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


def _others_stay(trial: Trial, images: Tensor, captions: Tensor, other: Tensor, side: int) -> bool:
    """Whether dF/dS of all but the last item of a side stays as it is when that item is another.

    Args:
        trial: the loss.
        images: (b, d).
        captions: (b, d).
        other: (b, d), the side with another last item.
        side: 0 where that is the images, the rows of dF/dS; 1 where it is the captions, its columns.
    """
    before = trial.gradient(images, captions)
    after = trial.gradient(*((other, captions) if side == 0 else (images, other)))
    kept = slice(None, -1)
    return trial.equal(before[kept], after[kept]) if side == 0 else trial.equal(before[:, kept], after[:, kept])
