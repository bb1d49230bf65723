"""What is known of a trainer: every call that was made, and what is read from their gradients, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from torch import Tensor

from lossscope.core.facts import Facts, Missing
from lossscope.objectives.checks.verdict import Verdict

from .pulls import Pulls, read_pulls
from .runs import Runs
from .step_gradient import StepGradient
from .trainers.base import Trainer
from .trial import Trial

READABLE = 1e3  # residual of a gradient that is no sum of embeddings, in rounding errors
UNREADABLE = "needs a step that takes negatives, and weights that can be read"
Examine = Callable[["Case"], Iterator[Verdict]]


@dataclass(eq=False)
class Case(Facts):
    """The calls of one trainer; its parts, `case.part(Together)`, are what not every trainer has."""

    trial: Trial
    trainer: Trainer
    alone: Runs

    def plain(self, name: str = "plain") -> StepGradient:
        """Return a call of one process, which must have been made."""
        return self.alone.results[name]

    @cached_property
    def pulls(self) -> Pulls:
        """Weights on one process, without mined negatives."""
        return self.read(self.plain())

    @property
    def is_readable(self) -> bool:
        """Whether the gradients of queries are sums of embeddings."""
        return self.pulls.residual <= READABLE * self.alone.precision

    def require_readable(self) -> None:
        """Raise Missing where they are not."""
        if not self.is_readable:
            raise Missing(UNREADABLE)

    def read(
        self,
        result: StepGradient,
        mined: bool = False,
        hard: float = 0.0,
        side: Literal["queries", "candidates"] = "queries",
    ) -> Pulls:
        """Return the weights in the gradients of one side.

        Args:
            result: of a call.
            mined: whether it had mined negatives.
            hard: how similar these were to the query, see `Trial.embeddings`.
            side: whose gradients are read.
        """
        return read_pulls(result.tensors[side], self.trial.embeddings(mined, hard), self.alone.precision)


def verdict(name: str, outcome: Literal["pass", "fail", "note", "skipped"], evidence: str, **numbers: float) -> Verdict:
    """Return a verdict with the numbers that its sentence says, for JSON."""
    return Verdict(name, outcome, evidence, numbers)


def rows(which: Tensor) -> str:
    """Return `query 3` or `5 of 8 queries` of a (B,) selection."""
    chosen = which.nonzero().flatten().tolist()
    return f"query {chosen[0]}" if len(chosen) == 1 else f"{len(chosen)} of {len(which)} queries"
