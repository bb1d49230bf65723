"""What is read from the calls of several processes that train on one batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from .case import Case
from .pulls import Pulls
from .ratio import STRAIGHT, Ratio, ratio, ratios
from .runs import Runs


@dataclass(frozen=True)
class Together:
    """The calls of several processes."""

    absent: ClassVar[str] = "one process was requested: nothing to compare"
    case: Case
    runs: Runs

    @cached_property
    def pulls(self) -> Pulls:
        """Weights on several processes, without mined negatives."""
        return self.case.read(self.runs.results["plain"])

    @cached_property
    def process_of(self) -> Tensor:
        """(B,) the process that each pair is on."""
        size, processes = self.case.trial.size, self.case.trial.processes
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
            return self._has_foreign_weights(self.pulls)
        got = self.runs.results["plain"].tensors
        whole, shares = (ratios(got, expected) for expected in (self.case.plain().tensors, self._mean_of_shares()))
        return max(each.distance for each in whole) <= max(each.distance for each in shares)

    @cached_property
    def tells_sharing(self) -> bool:
        """Whether weights say if candidates are shared: on one process, a query has some on those of others."""
        return self.case.is_readable and self._has_foreign_weights(self.case.pulls)

    def _has_foreign_weights(self, pulls: Pulls) -> bool:
        foreign = self.process_of[:, None] != self.process_of
        return bool(((pulls.candidates.abs() > pulls.smallest) & foreign).any())

    @cached_property
    def reaching(self) -> Ratio:
        """The weights that reach candidates on several processes, against those that reach queries.

        Of a loss of similarities both are dL/dS: the weight of c_j in the gradient of q_i is that of q_i in the
        gradient of c_j, unless one of them was a constant for the other.
        """
        of_candidates = self.case.read(self.runs.results["plain"], side="candidates").queries.T
        return ratio("candidates", of_candidates, self.pulls.candidates)

    @cached_property
    def keeps_gradients(self) -> bool | None:
        """Whether no gradient is lost between processes; None where neither weights nor values tell."""
        if self.case.is_readable:
            return self.reaching.distance <= min(max(STRAIGHT, 100 * self.case.alone.precision), 0.1)
        alone, together = self.case.alone.lost, self.runs.lost
        return together.all_right if alone is not None and together is not None and alone.all_right else None

    @cached_property
    def is_another_loss(self) -> bool:
        """Whether several processes compute another loss than one with the whole batch, and lose no gradient of it."""
        all_ratios = ratios(self.runs.results["plain"].tensors, self.expected())
        turned = any(each.cosine < 1 - max(STRAIGHT, 10 * self.case.alone.precision) for each in all_ratios)
        return turned and self.keeps_gradients is True

    @property
    def expected_value(self) -> float:
        """The loss of the whole batch; the mean of those of the shares where no candidates are shared."""
        if self.shares_candidates:
            return self.case.plain().value
        shares = [self.case.plain(f"share {rank}").value for rank in range(self.case.trial.processes)]
        return sum(shares) / len(shares)

    def expected(self) -> dict[str, Tensor]:
        """Return the gradients that several processes must have.

        Those of one process with the whole batch; where no candidates are shared, the mean over processes of those of
        one process with a share, or their sum where the trainer adds gradients up.
        """
        if self.shares_candidates:
            return self.case.plain().tensors
        return self._mean_of_shares()

    def _mean_of_shares(self) -> dict[str, Tensor]:
        shares = [self.case.plain(f"share {rank}") for rank in range(self.case.trial.processes)]
        by = 1 / self.case.trial.processes if self.case.trial.mean else 1.0
        parameters = {
            name: by * sum((s.parameters[name] for s in shares), torch.zeros(()))
            for name in self.case.plain().parameters
        }
        return {
            "queries": by * torch.cat([s.queries for s in shares]),
            "candidates": by * torch.cat([s.candidates for s in shares]),
            **parameters,
        }
