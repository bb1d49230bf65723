"""Does every row have the gradient of the value that the step returns, or have some rows none?

⟨dL/dx_i, v⟩ is compared with (L(x_i + h v) − L(x_i − h v)) / 2h for a random v. A step that keeps part of its loss
constant has another gradient in all rows; one that drops the gradients of a chunk has the right one in some rows, and
0 in the others. On several processes L is the mean (or the sum) of their values: a gather that loses gradients has
another gradient than that, whatever one process would compute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .precision import EXACT
from .step_gradient import StepCall, StepGradient, step_value
from .trainers.base import Trainer
from .trial_embeddings import TrialEmbeddings

FINE = (1e-5, 1e-4)  # h (embeddings have length 1), and what is right, relative to the largest derivative
COARSE = (1e-3, 3e-2)  # the same for a step that computes in float32


@dataclass(frozen=True)
class LostRows:
    """Rows of queries and candidates by their derivatives."""

    right: int
    lost: int  # rows without any gradient, whose value changes
    first: str  # of the lost ones, such as `query 3`
    total: int

    @property
    def all_right(self) -> bool:
        """Whether every row has the gradient of the value."""
        return self.right == self.total > 0


def lost_rows(
    trainer: Trainer,
    trial: TrialEmbeddings,
    call: StepCall,
    plain: StepGradient,
    precision: float,
    factor: float = 1.0,
    most: int = 1_000,
) -> LostRows | None:
    """Count the rows with the gradient of the value; None where the step returns no value, or computes in half.

    Args:
        trainer: builds the step.
        trial: the batch.
        call: how it is called.
        plain: the gradient of this call.
        precision: relative size of a rounding error in it.
        factor: of the mean value of the processes, where their gradients are added up.
        most: rows of each side that are looked at.
    """
    if plain.value != plain.value or precision > EXACT[torch.float32]:
        return None
    step, close = FINE if precision <= EXACT[torch.float64] else COARSE
    generator = torch.Generator().manual_seed(call.seed)
    right = total = 0
    lost: list[str] = []
    for side, gradient in (("queries", plain.queries), ("candidates", plain.candidates)):
        directions = torch.randn(gradient.shape, generator=generator, dtype=torch.float64)
        rows = torch.arange(0, len(gradient), -(-len(gradient) // most))
        gradient, directions = gradient[rows], directions[rows]
        steps = zip(rows.tolist(), step * directions, strict=True)
        numeric = torch.tensor(
            [factor * _derivative(trainer, trial, call, side, row, move) / step for row, move in steps],
            dtype=torch.float64,
        )
        stated = (gradient * directions).sum(1)
        scale = float(numeric.abs().max())
        is_right = (stated - numeric).abs() <= close * scale
        is_lost = ~gradient.any(1) & (numeric.abs() > 2 * close * scale)
        if scale == 0 or not bool(gradient.any()):  # constant for the step, as the keys of a momentum encoder
            continue
        right, total = right + int(is_right.sum()), total + len(gradient)
        lost += [f"{'query' if side == 'queries' else 'candidate'} {row}" for row in rows[is_lost].tolist()]
    return LostRows(right, len(lost), lost[0] if lost else "", total)


def _derivative(
    trainer: Trainer, trial: TrialEmbeddings, call: StepCall, side: str, row: int, direction: Tensor
) -> float:
    """Return half the difference of the values at both ends of a step of one row."""

    def value(sign: float) -> float:
        moved = getattr(trial, side).clone()
        moved[row] += sign * direction
        return step_value(trainer, replace(trial, **{side: moved}), call)

    return (value(1.0) - value(-1.0)) / 2
