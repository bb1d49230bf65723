"""Which numbers can a sample of queries give? Numbers of single queries that need only their own row of S."""

from __future__ import annotations

from collections.abc import Sequence

from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.registry import short_spec

from ..run_probes import name_of_objective, needs_whole_matrix


def require_probes_of_queries(objectives: Sequence[Objective], probes: Sequence[Probe], option: str) -> None:
    """Raise InputError for objectives and probes that need all queries, or more than a query's row of S.

    Args:
        objectives: of the sweep.
        probes: of the sweep.
        option: the option that asks for a sample.
    """
    for probe in probes:
        if probe.axis != "query":
            raise InputError(
                f"{short_spec(probe)} has no number of a single query, so that a sample of queries says nothing of it. "
                f"Leave it out, or {option}"
            )
        for objective in objectives if probe.needs_objective else (None,):
            if needs_whole_matrix(objective, probe):
                name = short_spec(probe) if objective is None else name_of_objective(objective)
                what = "convention" if getattr(probe, "convention", "corrected") != "corrected" else "loss"
                raise InputError(
                    f"the numbers of a query of {name} depend on other queries under this {what}, so a sample is not "
                    f"enough. Leave it out, or {option}"
                )
