"""What is known of a trainer: every call that was made, and what is read from their gradients, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from lossscope.objectives.checks.verdict import Verdict

from .pulls import Pulls, read_pulls
from .ratio import STRAIGHT, Ratio, ratio, ratios
from .runs import Runs
from .softmax_fit import SoftmaxFit, fit_softmax
from .step_gradient import StepGradient
from .trainers.base import Trainer
from .trial import Trial
from .trial_embeddings import HARD, NEAR

READABLE = 1e3  # residual of a gradient that is no sum of embeddings, in rounding errors
Examine = Callable[["Case"], Iterator[Verdict]]


@dataclass(frozen=True)
class Case:
    """The calls of one trainer."""

    trial: Trial
    trainer: Trainer
    alone: Runs
    together: Runs | None = None  # None: not made, as one process was requested
    error: str | None = None  # what ended the calls of several processes

    def plain(self, name: str = "plain") -> StepGradient:
        """Return a call of one process, which must have been made."""
        return self.alone.results[name]

    @cached_property
    def pulls(self) -> Pulls:
        """Weights on one process, without mined negatives."""
        return self._read(self.plain(), mined=False)

    @cached_property
    def mined(self) -> Pulls | None:
        """Weights on one process, with mined negatives that are less similar than the positive."""
        result = self.alone.get("mined")
        return None if result is None else self._read(result, mined=True)

    @cached_property
    def hard(self) -> Pulls | None:
        """Weights on one process, with mined negatives that are more similar than the positive."""
        result = self.alone.get("hard")
        return None if result is None else self._read(result, mined=True, hard=HARD)

    @cached_property
    def hardest(self) -> Pulls | None:
        """Weights on one process, with mined negatives that are nearly the query."""
        result = self.alone.get("hardest")
        return None if result is None else self._read(result, mined=True, hard=NEAR)

    @cached_property
    def pulls_together(self) -> Pulls:
        """Weights on several processes, without mined negatives."""
        assert self.together is not None, "several processes must have been requested"
        return self._read(self.together.results["plain"], mined=False)

    @cached_property
    def fit(self) -> SoftmaxFit | None:
        """The softmax that the loss is, without mined negatives; None where it is none."""
        return fit_softmax(self.pulls, self.trial.embeddings(), self.alone.precision)

    @cached_property
    def fit_mined(self) -> SoftmaxFit | None:
        """The softmax that the loss is with mined negatives."""
        if self.mined is None:
            return None
        return fit_softmax(self.mined, self.trial.embeddings(mined=True), self.alone.precision)

    @cached_property
    def fits_of_draws(self) -> list[SoftmaxFit]:
        """The softmaxes that the loss is under other seeds, where it draws random numbers."""
        mined = self.mined is not None
        embeddings = self.trial.embeddings(mined)
        results = [self.alone.results[name] for name in self.alone.results if name.startswith("draw")]
        fits = [fit_softmax(self._read(one, mined), embeddings, self.alone.precision) for one in results]
        return [fit for fit in fits if fit is not None]

    @property
    def is_readable(self) -> bool:
        """Whether the gradients of queries are sums of embeddings."""
        return self.pulls.residual <= READABLE * self.alone.precision

    @cached_property
    def process_of(self) -> Tensor:
        """(B,) the process that each pair is on."""
        size, processes = self.trial.size, self.trial.processes
        return torch.cat(
            [
                torch.full((size * (r + 1) // processes - size * r // processes,), r, dtype=torch.int64)
                for r in range(processes)
            ]
        )

    @cached_property
    def shares_candidates(self) -> bool:
        """Whether a query on one process has a weight on candidates of another.

        Where it has none on one process either, or weights cannot be read: whether gradients are nearer to those of
        the whole batch than to those of the shares.
        """
        if self.tells_sharing:
            return self._has_foreign_weights(self.pulls_together)
        assert self.together is not None
        got = self.together.results["plain"].tensors
        whole, shares = (ratios(got, one) for one in (self.plain().tensors, self._mean_of_shares()))
        return max(one.distance for one in whole) <= max(one.distance for one in shares)

    @cached_property
    def tells_sharing(self) -> bool:
        """Whether weights say if candidates are shared: on one process, a query has some on those of others."""
        return self.is_readable and self._has_foreign_weights(self.pulls)

    def _has_foreign_weights(self, pulls: Pulls) -> bool:
        foreign = self.process_of[:, None] != self.process_of
        return bool(((pulls.candidates.abs() > pulls.smallest) & foreign).any())

    @cached_property
    def reaching(self) -> Ratio:
        """The weights that reach candidates on several processes, against those that reach queries.

        Of a loss of similarities both are dL/dS: the weight of c_j in the gradient of q_i is that of q_i in the
        gradient of c_j, unless one of them was a constant for the other.
        """
        assert self.together is not None, "several processes must have been requested"
        of_candidates = self._read(self.together.results["plain"], mined=False, side="candidates").queries.T
        return ratio("candidates", of_candidates, self.pulls_together.candidates)

    @cached_property
    def keeps_gradients(self) -> bool | None:
        """Whether no gradient is lost between processes; None where neither weights nor values tell."""
        if self.is_readable:
            return self.reaching.distance <= min(max(STRAIGHT, 100 * self.alone.precision), 0.1)
        alone, together = self.alone.lost, None if self.together is None else self.together.lost
        return together.all_right if alone is not None and together is not None and alone.all_right else None

    @cached_property
    def is_another_loss(self) -> bool:
        """Whether several processes compute another loss than one with the whole batch, and lose no gradient of it."""
        assert self.together is not None, "several processes must have been requested"
        every = ratios(self.together.results["plain"].tensors, self.expected())
        turned = any(one.cosine < 1 - max(STRAIGHT, 10 * self.alone.precision) for one in every)
        return turned and self.keeps_gradients is True

    @property
    def expected_value(self) -> float:
        """The loss of the whole batch; the mean of those of the shares where no candidates are shared."""
        if self.shares_candidates:
            return self.plain().value
        shares = [self.plain(f"share {rank}").value for rank in range(self.trial.processes)]
        return sum(shares) / len(shares)

    def expected(self) -> dict[str, Tensor]:
        """Return the gradients that several processes must have.

        Those of one process with the whole batch; where no candidates are shared, the mean over processes of those of
        one process with a share, or their sum where the trainer adds gradients up.
        """
        if self.shares_candidates:
            return self.plain().tensors
        return self._mean_of_shares()

    def _mean_of_shares(self) -> dict[str, Tensor]:
        shares = [self.plain(f"share {rank}") for rank in range(self.trial.processes)]
        by = 1 / self.trial.processes if self.trial.mean else 1.0
        parameters = {
            name: by * sum((s.parameters[name] for s in shares), torch.zeros(())) for name in self.plain().parameters
        }
        return {
            "queries": by * torch.cat([s.queries for s in shares]),
            "candidates": by * torch.cat([s.candidates for s in shares]),
            **parameters,
        }

    def _read(
        self, result: StepGradient, mined: bool, hard: float = 0.0, side: Literal["queries", "candidates"] = "queries"
    ) -> Pulls:
        return read_pulls(result.tensors[side], self.trial.embeddings(mined, hard), self.alone.precision)


def verdict(name: str, outcome: Literal["pass", "fail", "note", "skipped"], evidence: str, **numbers: float) -> Verdict:
    """Return a verdict with the numbers that its sentence says, for JSON."""
    return Verdict(name, outcome, evidence, numbers)


def rows(which: Tensor) -> str:
    """Return `query 3` or `5 of 8 queries` of a (B,) selection."""
    chosen = which.nonzero().flatten().tolist()
    return f"query {chosen[0]}" if len(chosen) == 1 else f"{len(chosen)} of {len(which)} queries"
