"""What can be computed of a sample of queries: numbers of single queries, in one batch of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lossscope.core.types import MinedNegatives
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.registry import short_spec

from ..run_probes import needs_whole_matrix
from ..shares import name_of_objective
from .draw import LEAST


class SampleOptions(Protocol):
    """The options of a sweep that decide whether there can be a sample."""

    @property
    def queries(self) -> int | None: ...
    @property
    def precision_of(self) -> str | None: ...
    @property
    def batch_size(self) -> int | None: ...
    @property
    def engine(self) -> str: ...
    @property
    def masks(self) -> tuple[str, ...]: ...
    @property
    def terms(self) -> tuple[str, ...]: ...
    @property
    def negatives(self) -> MinedNegatives: ...


def require_sample(options: SampleOptions, objectives: Sequence[Objective], probes: Sequence[Probe]) -> None:
    """Raise InputError for options, objectives and probes that need all queries, or more than their own row of S."""
    if options.queries is not None and options.precision_of is not None:
        raise InputError("--queries and --precision-of both say how many queries there are; give one")
    if options.queries is not None and options.queries < LEAST:
        raise InputError(f"--queries must be at least {LEAST}; got {options.queries}")
    if options.precision_of is not None:
        from .precision import Precision

        Precision.parse(options.precision_of)
    wrong = {
        "--batch-size all": options.batch_size is not None,
        "no --mask": bool(options.masks),
        "no --terms": bool(options.terms),
        "--negatives batch or none": options.negatives == "own",
        "engine auto": options.engine != "auto",
    }
    if any(wrong.values()):
        needed = " and ".join(name for name, is_wrong in wrong.items() if is_wrong)
        raise InputError(f"a sample of queries is compared with all candidates, so that it needs {needed}")
    require_probes_of_queries(objectives, probes, "--queries")


def require_probes_of_queries(objectives: Sequence[Objective], probes: Sequence[Probe], option: str) -> None:
    """Raise InputError for objectives and probes that need all queries, or more than their own row of S.

    Args:
        objectives: that probes are run on.
        probes: all of them.
        option: what asks for a sample.
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
                    f"the numbers of a query of {name} depend on other queries under this {what}, so that some cannot "
                    f"be computed alone. Leave it out, or {option}"
                )
