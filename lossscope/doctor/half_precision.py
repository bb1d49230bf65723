"""Does the type of the numbers change what the loss sees?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from .base import Advice, Check, Evidence, Finding, Severity
from .parts.alignment import Alignment
from .parts.batches import EPS, Batches, batch_rows
from .parts.patient import Patient
from .parts.vectors import Vectors

_NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class HalfPrecision(Check):
    """Do the loss or counts of similarities in the given half precision differ from those in float32?

    bfloat16 has 8 bits: near 1 its numbers are 0.004 apart, which at tau 0.01 changes a weight by a factor of 1.5.
    Source: the arithmetic of the types; docs/performance.md.
    """

    change: float = 0.01  # of the loss or of the mean count, as a share
    smallest: float = 0.01  # nats, or counts, below which a change has no effect
    ties: float = 0.05  # share of the positives that equal a negative after rounding, and did not before
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 36
    healthy: ClassVar[tuple[str, str] | None] = ("at most", "change")

    def examine(self, patient: Patient) -> Finding | None:
        narrow = {side.precision for side in patient.part(Vectors).facts} & set(_NARROW)
        if not narrow:
            return None
        dtype = torch.bfloat16 if torch.bfloat16 in narrow else torch.float16
        alignment = patient.part(Alignment)
        S, others = alignment.S.i2t, alignment.negatives
        rounded = S.to(dtype).float()
        ties = self._ties(rounded, others) - self._ties(S, others)
        evidence = [Evidence("share of positives that tie with a negative after rounding", ties, self.ties, (0, 0.05))]
        means = self._means(patient, dtype)
        changes = [mean for mean in means if self._excess(*mean[1:]) > 1]
        evidence += [self._evidence(dtype, *change) for change in changes]
        # above `change` where one of the three is above its threshold
        patient.signals[self.id()] = self.change * max([ties / self.ties, *(self._excess(*mean[1:]) for mean in means)])
        if ties <= self.ties and not changes:
            return None
        return self.finding(
            f"{_name(dtype)} changes what the loss sees",
            f"Rounding similarities to {_name(dtype)} {self._words(ties, changes)}.",
            tuple(evidence),
            (Advice("Compute similarities and the softmax in float32: (x.float() @ y.float().T) / tau."),),
        )

    def _evidence(self, dtype: torch.dtype, what: str, before: float, after: float) -> Evidence:
        """Return a change as a share of the number in float32, or as a difference where that number is 0."""
        if before:
            return Evidence(f"{what} in {_name(dtype)} / in float32", after / before, 1 + self.change, (0.99, 1.01))
        return Evidence(f"{what} in {_name(dtype)} (0 in float32)", after, self.smallest, (0, self.smallest))

    @staticmethod
    def _ties(S: torch.Tensor, others: torch.Tensor) -> float:
        return float(((S.diagonal()[:, None] == S) & others).any(1).double().mean())

    def _excess(self, before: float, after: float) -> float:
        """Return a change as a multiple of the smallest one that counts."""
        return abs(after - before) / max(self.change * abs(before), self.smallest)

    @staticmethod
    def _means(patient: Patient, dtype: torch.dtype) -> list[tuple[str, float, float]]:
        """Return (name, mean over queries in float32, mean in the narrow type) of loss and count."""
        if not patient.has(Batches):
            return []
        objective, blocks = patient.objective, []
        for directions in batch_rows(patient):
            for rows in directions:
                S, numbers = rows.S.float(), np.zeros((2, 2))
                for row, scores in enumerate((S, S.to(dtype).float())):
                    values, counted = objective(scores, rows.mask).values, replace(rows, S=scores, buffers=None)
                    loss = math.nan if values is None else float(values.double().mean())
                    numbers[row] = loss, float(counted.counts(objective, EPS).above.double().mean())
                blocks.append(numbers)
        before, after = np.mean(blocks, axis=0).tolist()
        return list(zip(("loss", "count"), before, after, strict=True))

    @staticmethod
    def _words(ties: float, changes: list[tuple[str, float, float]]) -> str:
        each = [
            f"multiplies the {what} by {after / before:.3g}"
            if before
            else f"raises the mean {what} from 0 to {after:.3g}"
            for what, before, after in changes
        ]
        return " and ".join([*each, f"makes {ties:.1%} more of the positives tie with a negative"])


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
