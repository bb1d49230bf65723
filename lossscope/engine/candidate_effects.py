"""How much does each candidate move the number of a query? As a probe states it, or measured by leaving it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from lossscope.objectives.base import Objective
from lossscope.probes.base import Effects, HasEffects, Probe
from lossscope.probes.views.view import DenseRows, View

CHUNK = 1 << 19  # entries of S whose effects are computed at a time
_LONGEST = 256  # candidates of a row that are left out one by one, which costs as many rows
_ALIKE = 0.02  # relative difference of numbers of a query in its batch and alone, which are rounded otherwise


def candidate_effects(
    probe: Probe,
    objective: Objective | None,
    rows: DenseRows,
    columns: Mapping[str, Tensor],
    places: Tensor,
    complete: Callable[[DenseRows], DenseRows],
) -> Effects | None:
    """Return the effect of each candidate on the columns of a probe, (r, c) each; None where none can be had.

    A probe states its effects, or they are measured by leaving candidates out one by one, which takes an objective
    whose rows do not influence each other.

    Args:
        probe: of queries.
        objective: None where the probe needs none.
        rows: r rows, each as a batch of its own.
        columns: of all queries.
        places: (r,) of the rows among all queries.
        complete: adds embeddings and keys to rows, where a probe reads them.
    """
    if isinstance(probe, HasEffects):
        effects = probe.effects(View(rows, objective))
        if effects is not None:
            return effects
    if objective is not None and (objective.coupled or objective.traits.square or objective.traits.needs_embeddings):
        return None
    if rows.S.shape[1] > _LONGEST or "gradients" in probe.reads:
        return None
    if probe.reads & {"embeddings", "keys"}:
        rows = complete(rows)
    return _measured_effects(probe, objective, rows, columns, places)


def _measured_effects(
    probe: Probe, objective: Objective | None, rows: DenseRows, columns: Mapping[str, Tensor], places: Tensor
) -> Effects | None:
    """Return y − (y without the candidate); None where y of a row alone is another than in its batch."""
    alone = _columns_of(probe, objective, rows)
    names = [name for name, column in alone.items() if column.ndim == 1 and name in columns]
    for name in names:
        now, before = alone[name].double(), columns[name].double()[places.to(columns[name].device)].to(rows.S.device)
        now, before = now[~rows.skipped], before[~rows.skipped]
        scale = float(before[~before.isnan()].abs().mean()) if bool((~before.isnan()).any()) else 0.0
        if not torch.allclose(now, before, rtol=_ALIKE, atol=_ALIKE * scale, equal_nan=True):
            return None
    effects = {name: torch.zeros(rows.S.shape, dtype=torch.float64, device=rows.S.device) for name in names}
    every = rows.mask.negatives.nonzero()
    if not len(every):
        return effects
    for queries, candidates in (pairs.T for pairs in torch.split(every, max(CHUNK // rows.S.shape[1], 1))):
        without = _columns_of(probe, objective, rows.without(queries, candidates))
        for name in names:
            effects[name][queries, candidates] = alone[name][queries].double() - without[name].double()
    return effects


def _columns_of(probe: Probe, objective: Objective | None, rows: DenseRows) -> dict[str, Tensor]:
    columns = probe.finish(probe.tile(View(rows, objective)))
    return {name: column.where(~rows.skipped.to(column.device), torch.nan) if column.is_floating_point() else column
            for name, column in columns.items() if column.ndim == 1}  # fmt: skip
