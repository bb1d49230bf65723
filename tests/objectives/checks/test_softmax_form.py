"""Does the check recognise a loss's softmax at any temperature, and name each mistake?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as losses write it
from torch import Tensor

from lossscope.core.similarity import pair_mask
from lossscope.objectives.base import Objective
from lossscope.objectives.checks.softmax_form import NONE, SIZE, check_softmax, form_batches
from lossscope.objectives.checks.verdict import Verdict
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.registry import build, names
from tests.each import each

Loss = Callable[[Tensor], Tensor]  # of logits (B, B)
TEMPERATURES = (0.01, 0.07, 1.0)


def diagonal(x: Tensor) -> Tensor:
    return torch.arange(len(x))


def each_row(x: Tensor) -> Tensor:
    return F.cross_entropy(x, diagonal(x), reduction="none")


def p(x: Tensor) -> Tensor:
    return x.softmax(1).diagonal()


def decoupled(x: Tensor) -> Tensor:
    negatives = x.masked_fill(torch.eye(len(x), dtype=torch.bool), -torch.inf)
    return (negatives.logsumexp(1) - x.diagonal()).mean()


SOUND: Mapping[str, tuple[Loss, str]] = {
    "mean": (lambda x: each_row(x).mean(), "ntxent of queries"),
    "sum": (lambda x: each_row(x).sum(), "ntxent of queries"),
    "both directions": (lambda x: each_row(x).mean() + each_row(x.T).mean(), "ntxent of queries and of candidates"),
    "unequal directions": (lambda x: 3 * each_row(x).mean() + each_row(x.T).mean(), "of queries and of candidates"),
    "right maximum": (lambda x: each_row(x - x.amax(1, keepdim=True).detach()).mean(), "ntxent of queries"),
    "right sum": (lambda x: -(x.exp() / x.exp().sum(1, keepdim=True)).diagonal().log().mean(), "ntxent of queries"),
    "decoupled": (decoupled, "dcl of queries"),
    "hard queries": (lambda x: (each_row(x).detach().softmax(0) * each_row(x)).sum(), "weighed by how hard each is"),
    "in float32": (lambda x: each_row(x.float()).mean(), "ntxent of queries"),
    "mutual information": (lambda x: x.exp().mean().log() - x.diagonal().mean(), "a bound of mutual information"),
}
NOTED: Mapping[str, tuple[Loss, str]] = {
    "candidates choose": (lambda x: each_row(x.T).mean(), "of candidates alone"),
    "mean absolute error": (lambda x: 1 - p(x).mean(), "as is meant by a mean absolute error"),
}
NO_SOFTMAX: Mapping[str, Loss] = {
    "focal": lambda x: ((1 - p(x)).square() * each_row(x)).mean(),
    "smoothed": lambda x: F.cross_entropy(x, diagonal(x), label_smoothing=0.1),
    "margin": lambda x: each_row(x - 0.5 * torch.eye(len(x))).mean(),
    "sigmoid": lambda x: -F.logsigmoid(x * (2 * torch.eye(len(x)) - 1)).mean(),
    "hinge": lambda x: (0.2 + x - x.diagonal()[:, None]).relu().mean(),
}
LOG_OF_MEAN, INVERSE, WRONG_AXIS = "−log of the mean of p", "the mean of 1/p", "taken from the wrong axis"
MISTAKES: Mapping[str, tuple[Loss, str]] = {
    "log of mean": (lambda x: -p(x).mean().log(), LOG_OF_MEAN),
    "log of mean, both": (lambda x: -p(x).mean().log() - p(x.T).mean().log(), LOG_OF_MEAN),
    "log of mean of candidates": (lambda x: -p(x.T).mean().log(), LOG_OF_MEAN),
    "no log": (lambda x: F.nll_loss(x.softmax(1), diagonal(x)), "−mean of p, without a log"),
    "exp of nll of softmax": (lambda x: F.nll_loss(x.softmax(1), diagonal(x)).exp(), "exp(−mean of p)"),
    "mean of exp": (lambda x: (-p(x)).exp().mean(), "the mean of exp(−p)"),
    "inverse probability": (lambda x: (1 / p(x)).mean(), INVERSE),
    "exp of nll": (lambda x: each_row(x).exp().mean(), INVERSE),
    "exp of loss": (lambda x: each_row(x).mean().exp(), "exp of the mean of −log p"),
    "whole matrix": (lambda x: -x.flatten().log_softmax(0).view_as(x).diagonal().mean(), "cost log 64, where"),
    "maximum of others": (lambda x: each_row(x - x.amax(1).detach()).mean(), WRONG_AXIS),
    "maximum with gradient": (lambda x: each_row(x - x.amax(1)).mean(), WRONG_AXIS),
    "maximum of a row for a column": (
        lambda x: each_row((x - x.amax(1, keepdim=True)).T).mean(), WRONG_AXIS
    ),
    "log of mean in float32": (lambda x: -p(x.float()).mean().log(), LOG_OF_MEAN),
}  # fmt: skip


def verdict(loss: Loss, tau: float) -> Verdict:
    def of_similarities(S: Tensor) -> Tensor:
        return loss(S / tau)

    (said,) = check_softmax(as_objective(of_similarities), 0)
    return said


@each("tau", TEMPERATURES, "name", SOUND)
def test_a_sound_softmax_passes_and_is_named(name: str, tau: float) -> None:
    said, (loss, kind) = None, SOUND[name]
    said = verdict(loss, tau)
    assert said.outcome == "pass", said.evidence
    assert kind in said.evidence.replace(f":tau={tau:g}", "")
    assert said.numbers["tau"] == pytest.approx(tau, rel=1e-3 if name == "in float32" else 1e-6)


@each("tau", TEMPERATURES, "name", MISTAKES)
def test_each_mistake_is_named_with_the_objective_that_it_would_be(name: str, tau: float) -> None:
    loss, text = MISTAKES[name]
    said = verdict(loss, tau)
    assert said.outcome == "fail", said.evidence
    assert text in said.evidence
    assert f"ntxent:tau={tau:g}" in said.evidence


@each("name", NOTED)
def test_what_may_be_meant_is_noted(name: str) -> None:
    loss, text = NOTED[name]
    said = verdict(loss, 0.1)
    assert said.outcome == "note"
    assert text in said.evidence


@each("tau", TEMPERATURES, "name", NO_SOFTMAX)
def test_other_losses_are_no_softmax(name: str, tau: float) -> None:
    assert verdict(NO_SOFTMAX[name], tau) == Verdict("softmax", "skipped", NONE)


@each("seed", range(3), "name", names("objectives"))
def test_no_registered_objective_has_a_mistake(name: str, seed: int) -> None:
    (said,) = check_softmax(build("objectives", name), seed)
    assert said.outcome in ("pass", "skipped"), said.evidence


@each("spec", ["ntxent:tau=0.05", "dcl:tau=0.2", "supcon:tau=0.1", "infonce:tau=0.07"])
def test_a_registered_softmax_is_read_as_what_it_is(spec: str) -> None:
    objective: Objective = build("objectives", spec)
    (said,) = check_softmax(objective, 0)
    assert said.outcome == "pass"
    assert said.numbers["tau"] == pytest.approx(float(spec.rpartition("=")[2]), rel=1e-6)
    assert ("dcl" in said.evidence) == spec.startswith("dcl")


def test_a_loss_of_embeddings_is_read_through_them() -> None:
    def mean_first(images: Tensor, captions: Tensor) -> Tensor:
        return -p(F.normalize(images, dim=1) @ F.normalize(captions, dim=1).T / 0.1).mean().log()

    (said,) = check_softmax(as_objective(mean_first), 0)
    assert said.outcome == "fail"
    assert LOG_OF_MEAN in said.evidence


def test_batches_that_are_alike_have_the_same_numbers_in_all_rows_and_columns() -> None:
    batches = form_batches()
    for name, S in batches.items():
        rows, columns = S.sort(1).values, S.sort(0).values.T
        alike = torch.equal(rows, rows[:1].expand_as(rows)) and torch.equal(columns, rows)
        assert alike == (name != "mixed")
        assert S.shape == (SIZE, SIZE)
        assert pair_mask(torch.arange(len(S))).match.equal(torch.eye(SIZE, dtype=torch.bool))
