"""Which temperature would fit the frozen batches best, and how many negatives would carry the weight then?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from lossscope.core.facts import Missing
from lossscope.errors import InputError

from ..types import Cure
from .batches import Batches, batch_rows, finite_mean, query_statistics
from .patient import Patient
from .remedies import Remedy

_TAUS = np.geomspace(0.005, 1.0, 24)
_BATCHES = 4


@dataclass(frozen=True)
class OtherTemperatures:
    """N_eff at the objective's temperature, and at the temperature with the lowest loss on the same batches."""

    tau: float
    best: float  # of a grid from 0.005 to 1
    effective: float  # mean N_eff of the queries at tau
    effective_at_best: float
    needs: ClassVar[tuple[type, ...]] = (Batches,)

    @classmethod
    def of(cls, patient: Patient, batches: Batches) -> OtherTemperatures:
        """Weigh a few batches at other temperatures. Raises Missing for an objective without `tau`."""
        objective: Any = batches.objective
        if "tau" not in {item.name for item in fields(objective)} or not isinstance(objective.tau, float):
            raise Missing("its objective has no temperature")
        rows = [direction for batch in islice(batch_rows(patient), _BATCHES) for direction in batch]
        losses, counts = dict[float, float](), dict[float, float]()
        for tau in (*map(float, _TAUS), objective.tau):
            try:
                other = replace(objective, tau=tau)
            except InputError:
                continue
            statistics = [query_statistics(other, direction) for direction in rows]
            losses[tau] = float(np.mean(np.concatenate([queries.loss for queries in statistics])))
            counts[tau] = finite_mean(np.concatenate([queries.effective for queries in statistics]))
        best = min(losses, key=lambda tau: losses[tau])
        return cls(objective.tau, best, counts[objective.tau], counts[best])


def weighed_again(patient: Patient) -> Sequence[Remedy]:
    """Return N_eff at the temperature that fits the batches best; none for an objective without a temperature."""
    if not patient.has(OtherTemperatures):
        return ()
    taus = patient.part(OtherTemperatures)
    what = f"with tau = {taus.best:.2g} on the same batches"
    cure = Cure(what, "N_eff", taus.effective, taus.effective_at_best, taus.effective_at_best)
    return (Remedy(what, cure=cure),)
