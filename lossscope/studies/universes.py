"""In which ways does a multiverse count, and with which probe and batch size is a run counted in each?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lossscope.core.types import Convention, WeightUnit
from lossscope.errors import InputError
from lossscope.objectives.counting.units import resolve_unit
from lossscope.registry import build, spec_of

from .multiverse_options import MultiverseOptions
from .study_file import StudyRun


@dataclass(frozen=True)
class Ways:
    """A way of counting: what a universe has beside batch size, epoch and seed."""

    convention: Convention
    unit: WeightUnit
    eps: float


def ways_of(options: MultiverseOptions) -> tuple[Ways, ...]:
    """Return all ways of counting: a published convention is in the unit of its paper.

    Raises:
        InputError: published conventions alone, without the unit of the paper.
    """
    ways = [
        Ways(convention, unit, eps)
        for convention in options.conventions
        for unit in (options.units if convention == "corrected" else ("paper",))
        for eps in options.eps
        if unit in options.units
    ]
    if not ways:
        raise InputError(
            "released and text count in the unit paper alone; got --units "
            f"{','.join(options.units)}. Add paper, or the convention corrected"
        )
    published = any(way.convention != "corrected" for way in ways)
    instead = [Ways("corrected", "paper", eps) for eps in options.eps if published]  # where a loss has no other
    return tuple(dict.fromkeys((*ways, *instead)))


@cache
def conventions_of(objective: str) -> tuple[Convention, ...]:
    """Return the ways of counting that an objective knows."""
    known: tuple[Convention, ...] = build("objectives", objective).traits.conventions
    return known


@cache
def probe_of(objective: str, way: Ways) -> str:
    """Return the spec of a probe; an objective that no paper counts has no unit `paper`, and is `relative`."""
    unit = resolve_unit(build("objectives", objective), way.unit)
    return spec_of(build("probes", f"cocos:eps={way.eps!r},convention={way.convention},unit={unit}"))


def batch_size_of(run: StudyRun, factor: float) -> int | None:
    """Return a factor times the batch size of a training; None below 2."""
    size = round(factor * run.recipe.batch_size)
    return size if size >= 2 else None
