"""Which losses can guessing give, under an objective and a layout of the batches?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lossscope.engine.loss_levels import Layout, guess_of_query, guess_of_run, is_logarithm, is_margin
from lossscope.objectives.base import Objective

_POWERS = range(1, 18)  # batch sizes 2 to 131,072, where the batch size is not known
_QUEUES = range(8, 18)  # powers of two of a queue
_MINED = range(1, 16)  # negatives of each query
_BASE = 0.07  # SupContrast's base temperature: its loss is T / 0.07 times the mean of logs
_TAUS = (0.05, 0.1, 0.2, 0.5)  # T of that code where it is unknown; 0.07 changes nothing
Trust = Literal["exact", "certain", "possible"]


@dataclass(frozen=True)
class Guess:
    """A loss that guessing gives, its name, and how far it can be trusted.

    `exact`: a run of lossscope, whose reduction is known, too. `certain`: from an objective or a batch size that the
    user or the source states. `possible`: from a layout that others train with.
    """

    value: float
    name: str
    trust: Trust

    @property
    def is_exact(self) -> bool:
        """Whether objective, layout and reduction are known."""
        return self.trust == "exact"

    @property
    def is_certain(self) -> bool:
        """Whether it follows from what is known."""
        return self.trust != "possible"


def guesses_of(
    objective: Objective | None,
    size: int | None,
    recipe: Mapping[str, Any] | None = None,
    counts_candidates: bool = True,
) -> Iterator[Guess]:
    """Yield the losses that guessing can give, the most trusted first.

    Args:
        objective: None where it is not known.
        size: pairs of a batch; None where it is not known.
        recipe: of a run of lossscope, whose loss is reduced in a known way.
        counts_candidates: whether a query has as many candidates as its batch has pairs, as far as the source tells.
    """
    if objective is not None and is_margin(objective):
        yield from _of_margin(objective, size, recipe)
        return
    if objective is not None and size is not None and recipe:
        value = guess_of_run(objective, size, recipe.get("reduction"))
        if value is not None:
            yield Guess(value, f"the loss of equal similarities at batches of {size}", "exact")
            return
    if size is None:
        yield from _without_size(objective)
        return
    is_softmax = objective is None or is_logarithm(objective)
    per_query = math.log(size) if objective is None else guess_of_query(objective, size)
    if per_query is None:
        return
    name = f"log {size:,}" if abs(per_query - math.log(size)) < 1e-3 else "the loss of equal similarities"
    trust: Trust = "certain" if counts_candidates else "possible"
    yield Guess(per_query, name, trust)
    yield Guess(2 * per_query, f"2 × {name}", trust)
    if is_softmax:
        yield from _of_layouts(objective, size)
        yield Guess(size * per_query, f"{size:,} × {name}", "possible")
        yield Guess(2 * size * per_query, f"2 × {size:,} × {name}", "possible")
    if objective is None:
        yield Guess(math.log(2), "log 2", "possible")


def _of_margin(objective: Objective, size: int | None, recipe: Mapping[str, Any] | None) -> Iterator[Guess]:
    """Yield the margin: of one direction or both, of each negative or the hardest, as a mean or a sum."""
    if size is not None and recipe:
        value = guess_of_run(objective, size, recipe.get("reduction"))
        if value is not None:
            yield Guess(value, f"the loss of equal similarities at batches of {size}", "exact")
            return
    margin: float = getattr(objective, "margin")  # noqa: B009 - objectives in general have none
    per_query = None if size is None else guess_of_query(objective, size)
    if per_query is not None and not math.isclose(per_query, margin, rel_tol=1e-3):
        yield Guess(per_query, "the margin of every negative", "certain")
        yield Guess(2 * per_query, "2 × the margin of every negative", "certain")
    yield Guess(margin, "the margin", "certain")
    yield Guess(2 * margin, "2 × the margin", "certain")
    if size is not None:
        yield Guess(size * margin, f"{size:,} × the margin", "possible")
        yield Guess(2 * size * margin, f"2 × {size:,} × the margin", "possible")


def _of_layouts(objective: Objective | None, size: int) -> Iterator[Guess]:
    """Yield the log of the candidates, the softmax loss of guessing, in layouts with more candidates than pairs."""
    views = Layout(size, views=True)
    trust: Trust = "certain" if objective is not None and objective.traits.positives == "many" else "possible"
    yield Guess(math.log(views.candidates), views.name, trust)
    tau = getattr(objective, "tau", None)
    taus = (tau,) if isinstance(tau, float) else _TAUS if objective is None else ()
    for layout in (views, Layout(size)):
        for temperature in taus:
            name = f"{temperature:g} / {_BASE:g} × {layout.name}, as SupContrast's code scales it"
            yield Guess(temperature / _BASE * math.log(layout.candidates), name, "possible")
    for layout in (*(Layout(size, mined=mined) for mined in _MINED), *(Layout(1, queue=2**power) for power in _QUEUES)):
        yield Guess(math.log(layout.candidates), layout.name, "possible")


def _without_size(objective: Objective | None) -> Iterator[Guess]:
    if hasattr(objective, "margin"):
        return
    for power in _POWERS:
        yield Guess(power * math.log(2), f"log {2**power:,}", "possible")
