"""Compute what the doctor keeps of every watched step: loss, recall and similarities of a few rows, without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.engine.one_batch import plain_mode
from lossscope.objectives.base import Gradient, LossObjective, Objective
from lossscope.objectives.counting.rows import WholeRows

from .observed import Observed

MOST = 128  # first rows of a batch; its queries are in random order
EVERY = 10  # batches from one loss of a whole batch to the next, where rows influence each other


@dataclass
class BatchNumbers:
    """(loss, recall, positive, hardest negative, chance): means over queries of the first direction, (5,).

    The loss is NaN where it is not computed. Recall is that of the batch, ties broken at random; chance is the
    recall of guessing. Nothing waits for the device if every row has a positive and a negative.
    """

    _calls: int = field(default=0, init=False)
    _mask: Mask | None = field(default=None, init=False)  # of the last batch, whole
    _rows: tuple[Mask, Tensor] | None = field(default=None, init=False)  # of the first rows, with chance

    def of(self, observed: Observed, objective: Objective | None) -> Tensor:
        """Return the numbers of a batch whose similarities are finite.

        Args:
            observed: with rows.
            objective: of the loss; None: take the observed value, if any.
        """
        with plain_mode(observed.first.S.device):
            rows = observed.first.detach()
            mask, chance = self._first_rows(rows.mask)
            S = rows.S[: len(mask.match)]
            if not (rows.mask.all_usable or mask.all_usable):  # that of the whole batch is known, as objectives read it
                S, mask = S[mask.usable], mask.rows(mask.usable)
            # the hardest negative and ties follow the probes; the best positive needs no waiting
            positive, whole = S.masked_fill(~mask.positives, -torch.inf).amax(1), WholeRows.from_rows(S, mask)
            hardest, ties = whole.hardest, whole.equal_to(positive).sum(1).long()
            first = (hardest <= positive) / (1 + ties)
            self._calls += 1
            loss = self._loss(observed, objective, S, mask)
            loss = S.new_full((), torch.nan) if loss is None else loss.to(S.device)
            return torch.stack([x.double() for x in (loss, first.mean(), positive.mean(), hardest.mean(), chance)])

    @property
    def newest_mask(self) -> Mask | None:
        """The mask of the last batch whose similarities were finite, whole; None before there is one."""
        return self._mask

    def _first_rows(self, mask: Mask) -> tuple[Mask, Tensor]:
        """Return the mask of the first rows, and chance; masks of pairs are the same in every batch."""
        if self._rows is None or self._mask is not mask:
            rows = mask.rows(torch.arange(min(len(mask.match), MOST), device=mask.match.device))
            share = (rows.positives.sum(1) / rows.valid.sum(1)).double()
            self._mask, self._rows = mask, (rows, share.where(rows.usable, torch.nan).nanmean())
        return self._rows

    def _loss(self, observed: Observed, objective: Objective | None, S: Tensor, mask: Mask) -> Tensor | None:
        """Return the mean loss of a query, (); None where it is not computed."""
        if objective is None or isinstance(objective, Gradient):
            return None if observed.value is None else observed.value.detach()
        if not (objective.coupled or objective.traits.square or objective.traits.needs_embeddings):
            if "both" in objective.counted_directions or not isinstance(objective, LossObjective):
                return None if observed.value is None else observed.value.detach()
            # without a query that has a positive and a negative, a batch trains nothing: its loss is exactly 0
            return objective.values(S, mask).mean() if len(S) else S.new_zeros(())
        if (self._calls - 1) % EVERY:
            return None
        whole = observed.first.detach()
        values = whole.with_embeddings_in_mask() if objective.traits.needs_embeddings else whole
        losses = objective(values.S, values.mask).values
        return None if losses is None else losses.mean()
