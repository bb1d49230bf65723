"""Any NaN or Inf?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .logs.base import TrainingLog
from .parts.matrix import Matrix
from .parts.parameters import Parameters
from .parts.patient import Patient
from .parts.positive_counts import PositiveCounts
from .parts.vectors import SideFacts, Vectors

_NO_POSITIVE = Advice(
    "Leave queries without a positive out of the loss (n = positives.sum(1), loss[n > 0].mean()), or draw at least two "
    "items of each class into a batch."
)
_ADVICE = (
    Advice("Compute the softmax and the norm in float32, and normalise with an eps: x / max(|x|, 1e-12)."),
    Advice("Lower the learning rate, clip the gradient (1.0), and look at the batch in which it began."),
)


@dataclass(frozen=True)
class NonFinite(Check):
    """Are there NaN or infinite numbers, or rows of zeros, whose cosine is 0 / 0?

    The check reads every number of the embeddings, similarities, weights of the model and the log. In a running loop
    with known positives it reads the batch before, too: a query without a positive has a mean over nothing.
    Source: IEEE 754; a row of zeros has no direction.
    """

    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 1
    explains: ClassVar[tuple[str, ...]] = (
        "complete-collapse", "dead-tower", "dimensional-collapse", "diverged", "half-precision", "hubness",
        "loss-spike", "no-gradient", "no-learning", "not-normalised", "temperature-too-high", "temperature-too-low",
        "overfitting", "margin-plateau", "frozen", "misaligned-pairs", "shuffled-share", "scale-falling",
        "anisotropy", "order-lost",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        looks: tuple[tuple[type[Any], Callable[[Any], Finding | None]], ...] = (
            (Vectors, self._vectors), (Matrix, self._matrix), (Parameters, self._parameters), (TrainingLog, self._log),
        )  # fmt: skip
        found = [look(patient.part(kind)) for kind, look in looks if patient.has(kind) and not _is_empty(patient, kind)]
        if not found:
            raise Missing(
                "it has neither numbers of a model nor a log with a loss",
                "numbers of a model, or a training log (--log)",
            )
        finding = next(filter(None, found), None)
        if finding is None or not patient.has(PositiveCounts):
            return finding
        return _with_positives(finding, patient.part(PositiveCounts))

    def _vectors(self, vectors: Vectors) -> Finding | None:
        return next((finding for finding in map(self._side, vectors.facts) if finding is not None), None)

    def _side(self, side: SideFacts) -> Finding | None:
        if side.not_finite:
            return self._found(
                f"{side.not_finite:,} of {side.n:,} {side.name} are not finite",
                f"Row {side.first_not_finite} of the {side.name} is the first with NaN or infinity: every similarity "
                "with it, and every loss of its batch, is NaN.",
                Evidence(f"share of {side.name} that are not finite", side.not_finite / side.n, 0.0, (0, 0)),
            )
        if not 0 < side.zero < side.n:
            return None
        return self._found(
            f"{side.zero:,} of {side.n:,} {side.name} are zero",
            f"Row {side.first_zero} of the {side.name} is the first of zeros only: its cosine is 0 / 0.",
            Evidence(f"share of {side.name} that are zero", side.zero / side.n, 0.0, (0, 0)),
        )

    def _matrix(self, matrix: Matrix) -> Finding | None:
        if not matrix.not_finite:
            return None
        return self._found(
            f"{matrix.not_finite:,} similarities are not finite",
            f"Row {matrix.first_not_finite} is the first with NaN or infinity.",
            Evidence("share of similarities that are not finite", matrix.not_finite / matrix.entries, 0.0, (0, 0)),
        )

    def _parameters(self, parameters: Parameters) -> Finding | None:
        if not parameters.not_finite:
            return None
        return self._found(
            f"weights of the model are not finite, the first in {parameters.not_finite[0]}",
            f"{len(parameters.not_finite)} tensors of {parameters.path.name} have NaN or infinity: all that the model "
            "computes is NaN.",
            Evidence("tensors that are not finite", float(len(parameters.not_finite)), 0.0, (0, 0)),
        )

    def _log(self, log: TrainingLog) -> Finding | None:
        loss = log.steps["loss"].to_numpy(dtype=np.float64) if "loss" in log.steps else np.zeros(0)
        bad = np.flatnonzero(~np.isfinite(loss) & _expected(log, loss))
        if not len(bad):
            return None
        step = int(log.steps["step"].iloc[bad[0]])
        norms = log.steps.get("grad_norm")
        norm = "" if norms is None else f", the gradient norm {norms.iloc[max(bad[0] - 1, 0)]:.3g} just before"
        return self._found(
            f"the loss is not finite from step {step:,}",
            f"At step {step:,} the loss is {loss[bad[0]]}{norm}; {len(bad):,} of {len(loss):,} steps have no "
            "finite loss.",
            Evidence("share of steps without a finite loss", len(bad) / len(loss), 0.0, (0, 0)),
        )

    def _found(self, title: str, why: str, evidence: Evidence) -> Finding:
        return self.finding(title, why, (evidence,), _ADVICE)


def _with_positives(finding: Finding, counts: PositiveCounts) -> Finding:
    """Return the finding, with the queries that have no positive, if any: a mean over none is 0 / 0."""
    if not counts.without:
        return finding
    share = counts.without / counts.queries
    return replace(
        finding,
        title=f"{finding.title}; {counts.without:,} of {counts.queries:,} queries had no positive",
        why=f"{finding.why} For a query without a positive, a loss that divides by their number, as SupCon, is 0 / 0.",
        evidence=(*finding.evidence, Evidence("share of queries without a positive", share, 0.0, (0, 0))),
        advice=(_NO_POSITIVE, *finding.advice),
    )


def _is_empty(patient: Patient, kind: type[Any]) -> bool:
    """Return whether a part is a log without a loss, as an evaluator writes it."""
    return kind is TrainingLog and not patient.part(TrainingLog).has_loss


def _expected(log: TrainingLog, loss: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which steps should have a loss: not those before the first loss, nor those with a finite gradient.

    An objective that states its gradient directly has no loss; a NaN loss has a NaN gradient.
    """
    finite = np.isfinite(loss)
    expected = np.ones(len(loss), dtype=bool)
    if finite.any():
        expected[: int(finite.argmax())] = False
    norms = log.steps.get("grad_norm")
    if norms is not None:
        expected &= ~(np.isnan(loss) & np.isfinite(norms.to_numpy(dtype=np.float64)))
    return expected
