"""Are queries without a positive the cause of a NaN loss, and no fault of a loss that copes with them?"""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as loops write it
from torch import Tensor, nn

from lossscope.core.similarity import Mask
from lossscope.doctor.types import Finding
from lossscope.live.monitor import LossScope

Watched = Literal["labels", "mask"]
SPEC = "supcon:tau=0.1"


def per_query(z: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return SupCon of each query as a sum over its positives, and their number."""
    diagonal = torch.eye(len(z), dtype=torch.bool)
    positives = (labels[:, None] == labels).masked_fill(diagonal, False)
    log_p = (z @ z.T / 0.1).masked_fill(diagonal, -1e9).log_softmax(1)
    return -(log_p * positives).sum(1), positives.sum(1)


def divided(z: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over positives; without positives it is 0 / 0."""
    total, number = per_query(z, labels)
    return (total / number).mean()


def left_out(z: Tensor, labels: Tensor) -> Tensor:
    """Return the same mean without the queries that have no positive."""
    total, number = per_query(z, labels)
    return (total[number > 0] / number[number > 0]).mean()


def train(loss: Any, classes: int, steps: int = 6, watched: Watched = "labels", breaks: int | None = None) -> LossScope:
    """Train and watch; from step `breaks` on, another fault makes the weights NaN."""
    scope = LossScope(SPEC, ("similarity",), sides="item", doctor=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tower = nn.Linear(16, 8)
        optimiser = torch.optim.SGD(tower.parameters(), 0.05)
        for step in range(steps):
            labels = torch.arange(32) % classes
            z = F.normalize(tower(torch.randn(classes, 16)[labels] + 0.3 * torch.randn(32, 16)), dim=1)
            if watched == "labels":
                scope.watch(embeddings=z, labels=labels)
            else:
                match = labels[:, None] == labels
                scope.watch(embeddings=z, mask=Mask(match, torch.ones_like(match)))
            optimiser.zero_grad()
            loss(z, labels).backward()
            optimiser.step()
            if step == breaks:
                with torch.no_grad():
                    tower.weight.fill_(torch.nan)
    return scope


def broken(scope: LossScope) -> Finding | None:
    return next((finding for finding in scope.findings if finding.id == "non-finite"), None)


@pytest.mark.parametrize("watched", ["labels", "mask"])
@pytest.mark.parametrize(("classes", "without"), [(30, 28), (20, 8), (31, 30)])
def test_queries_without_a_positive_are_named_as_the_cause(classes: int, without: int, watched: Watched) -> None:
    finding = broken(train(divided, classes, watched=watched))
    assert finding is not None
    assert f"{without} of 32 queries had no positive" in finding.title
    assert "0 / 0" in finding.why
    (share,) = (entry.value for entry in finding.evidence if "without a positive" in entry.statistic)
    assert share == without / 32
    assert "loss[n > 0].mean()" in finding.advice[0].text


def test_a_loss_that_leaves_them_out_has_no_finding() -> None:
    assert broken(train(left_out, 20)) is None


def test_where_all_queries_have_positives_another_cause_is_not_laid_to_them() -> None:
    finding = broken(train(left_out, 8, breaks=2))
    assert finding is not None
    assert "positive" not in finding.title + finding.why + finding.advice[0].text


def test_a_loss_that_is_no_number_is_named_on_its_own_batch() -> None:
    scope = LossScope(SPEC, ("similarity",), doctor=True)
    z = F.normalize(torch.randn(16, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    for labels in (torch.arange(16) % 4, torch.arange(16) % 15):
        scope.watch(embeddings=z, labels=labels, log={"loss": float(divided(z, labels))})
    finding = broken(scope)
    assert finding is not None
    assert "14 of 16 queries had no positive" in finding.title


def test_pairs_always_have_a_positive() -> None:
    scope = LossScope("ntxent", ("similarity",), doctor=True)
    for factor in (1.0, torch.nan):
        scope.watch(factor * torch.eye(8))
    finding = broken(scope)
    assert finding is not None
    assert "positive" not in finding.title
