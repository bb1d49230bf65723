"""Which softmax is the loss, with and without mined negatives?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.core.facts import Missing
from lossscope.objectives.checks.softmax_form import NONE

from .case import Case
from .mined import Mined
from .softmax_fit import SoftmaxFit, fit_softmax


@dataclass(frozen=True)
class Softmax:
    """The softmax that the loss is, without mined negatives."""

    fit: SoftmaxFit

    @classmethod
    def of(cls, case: Case) -> Softmax:
        """Fit it. Raises Missing where the loss is none."""
        fit = fit_softmax(case.pulls, case.trial.embeddings(), case.alone.precision)
        if fit is None:
            raise Missing(NONE)
        return cls(fit)


@dataclass(frozen=True)
class MinedSoftmax:
    """The softmax that the loss is with mined negatives."""

    fit: SoftmaxFit
    needs: ClassVar[tuple[type, ...]] = (Mined,)

    @classmethod
    def of(cls, case: Case, mined: Mined) -> MinedSoftmax:
        """Fit it. Raises Missing where the loss is none."""
        fit = fit_softmax(mined.pulls, case.trial.embeddings(mined=True), case.alone.precision)
        if fit is None:
            raise Missing(NONE)
        return cls(fit)
