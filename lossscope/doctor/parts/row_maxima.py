"""Do the highest similarities of a matrix stand apart from the others, as those of right partners do?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lossscope.core.facts import TooLittle

from .matrix import Matrix
from .patient import Patient
from .vectors import draw_rows

_ROWS = 2048  # sampled
_LEAST = 16  # rows and columns


@dataclass(frozen=True)
class RowMaxima:
    """The three highest similarities of rows and of columns."""

    gap: float  # mean gap from first to second over that from second to third; 2 in a normal sample
    mutual: float  # share of the rows whose highest similarity is also the highest of its column
    needs: ClassVar[tuple[type, ...]] = (Matrix,)

    @classmethod
    def of(cls, _: Patient, matrix: Matrix) -> RowMaxima:
        """Read a sample of rows and columns. Raises TooLittle for a small matrix, or one that float32 does not hold."""
        matrix.require_float32()
        S = matrix.S
        if min(S.shape) < _LEAST:
            raise TooLittle(f"it has {len(S)} × {S.shape[1]} similarities; {_LEAST} × {_LEAST} are needed")
        rng = np.random.default_rng(0)
        rows, columns = (torch.from_numpy(draw_rows(np.arange(size), _ROWS, rng)) for size in S.shape)
        of_rows, of_columns = S[rows].float().nan_to_num(-torch.inf), S[:, columns].float().T.nan_to_num(-torch.inf)
        nearest = of_rows.argmax(1)
        back = S[:, nearest].float().nan_to_num(-torch.inf).argmax(0)
        return cls(min(_gap(of_rows), _gap(of_columns)), float((back == rows).float().mean()))


def _gap(S: Tensor) -> float:
    top = S.topk(3, dim=1).values
    first, second = (top[:, 0] - top[:, 1]).nanmean(), (top[:, 1] - top[:, 2]).nanmean()
    return float(first / second) if float(second) > 0 else 0.0
