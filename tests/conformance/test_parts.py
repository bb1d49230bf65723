"""Does each part of a check work alone: precision, rows without gradient, ratios, user's steps, options?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from lossscope.conformance.library_options import construct, keyword_arguments, load_class
from lossscope.conformance.precision import EXACT, precision_of
from lossscope.conformance.ratio import ratio, ratios
from lossscope.conformance.row_derivatives import lost_rows
from lossscope.conformance.step_gradient import StepCall, step_gradient
from lossscope.conformance.trainers.base import Step
from lossscope.conformance.trial_embeddings import trial_embeddings
from lossscope.conformance.user_step import wrap_step
from lossscope.errors import InputError, SpecError

TRIAL = trial_embeddings(6, 0, 0)


@dataclass(frozen=True)
class Steps:
    """A trainer of one function."""

    step: Callable[..., Tensor | None]
    takes_negatives: bool = False
    needs_negatives: bool = False
    is_chunked: bool = False
    is_accumulated: bool = False

    def require(self) -> None:
        """Require nothing."""

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        return self.step


def nce(queries: Tensor, candidates: Tensor) -> Tensor:
    return cross_entropy(normalize(queries) @ normalize(candidates).T / 0.1, torch.arange(len(queries)))


def in_float32(queries: Tensor, candidates: Tensor) -> Tensor:
    return nce(queries.float(), candidates.float())


def logits_in_float32(queries: Tensor, candidates: Tensor) -> Tensor:
    S = (normalize(queries) @ normalize(candidates).T).float() / 0.1
    return cross_entropy(S, torch.arange(len(queries)))


@pytest.mark.parametrize(("step", "least", "most"), [
    (nce, 1e-9, 1e-9), (in_float32, 2e-5, 1e-4), (logits_in_float32, 2e-5, 1e-4),
])  # fmt: skip
def test_precision_is_that_of_the_type_a_step_computes_in(
    step: Callable[..., Tensor], least: float, most: float
) -> None:
    results = {
        "plain": step_gradient(Steps(step), TRIAL, StepCall()),
        "reversed": step_gradient(Steps(step), TRIAL.backwards(), StepCall()),
    }
    assert least <= precision_of(results, torch.float64) <= most


def test_another_gradient_in_another_order_is_no_matter_of_precision() -> None:
    def first_row(queries: Tensor, candidates: Tensor) -> Tensor:
        return nce(queries, candidates) + queries[0].sum()

    results = {
        "plain": step_gradient(Steps(first_row), TRIAL, StepCall()),
        "reversed": step_gradient(Steps(first_row), TRIAL.backwards(), StepCall()),
    }
    assert precision_of(results, torch.float64) == EXACT[torch.float64]


def drops_rows(queries: Tensor, candidates: Tensor) -> Tensor:
    kept = torch.cat([queries[:3].detach(), queries[3:]])
    return nce(kept, candidates)


def without_candidates(queries: Tensor, candidates: Tensor) -> Tensor:
    return nce(queries, candidates.detach())


def half_constant(queries: Tensor, candidates: Tensor) -> Tensor:
    return nce(queries, candidates) + nce(queries.detach(), candidates.detach()) * 2


@pytest.mark.parametrize(("step", "right", "lost", "total"), [
    (nce, 12, 0, 12),
    (in_float32, 12, 0, 12),
    (drops_rows, 9, 3, 12),
    (without_candidates, 6, 0, 6),  # the step keeps a side without any gradient constant
    (half_constant, 0, 0, 12),
])  # fmt: skip
def test_rows_are_right_lost_or_another_part(step: Callable[..., Tensor], right: int, lost: int, total: int) -> None:
    plain = step_gradient(Steps(step), TRIAL, StepCall())
    precision = 2e-5 if step is in_float32 else 1e-9
    rows = lost_rows(Steps(step), TRIAL, StepCall(), plain, precision)
    assert rows is not None and (rows.right, rows.lost, rows.total) == (right, lost, total)
    assert rows.first == ("query 0" if lost else "")


def test_a_step_that_calls_backward_itself_has_no_value_to_compare_with() -> None:
    def silent(queries: Tensor, candidates: Tensor) -> None:
        nce(queries, candidates).backward()

    plain = step_gradient(Steps(silent), TRIAL, StepCall())
    assert plain.value != plain.value
    assert lost_rows(Steps(silent), TRIAL, StepCall(), plain, 1e-9) is None
    assert ratios(plain.tensors, step_gradient(Steps(nce), TRIAL, StepCall()).tensors)[0].distance < 1e-12


@pytest.mark.parametrize(("step", "message"), [
    (lambda q, c: q.sum(1), "must return the scalar .* got shape"),
    (lambda q, c: 3.0, "must return the scalar .* got float"),
    (lambda q, c: torch.zeros(()), "depends on its embeddings; none got a gradient"),
    (lambda q, c: None, "none got a gradient"),
])  # fmt: skip
def test_what_a_step_must_return(step: Callable[..., Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        step_gradient(Steps(step), TRIAL, StepCall())


def test_a_ratio_has_a_length_and_a_cosine() -> None:
    e = torch.tensor([3.0, 4.0])
    half = ratio("queries", e / 2, e)
    assert (half.length, half.cosine, half.distance) == pytest.approx((0.5, 1.0, 0.5))
    assert str(half) == "0.5 times (queries)"
    assert str(ratio("candidates", torch.tensor([4.0, -3.0]), e)) == "0 times (candidates, at a cosine of 0)"
    nothing = torch.zeros(2)
    assert ratio("x", nothing, nothing).distance == 0 and ratio("x", nothing, nothing).length == 1
    assert str(ratio("x", e, nothing)) == "not 0 (x), which it must be"


class Scaled(nn.Module):
    """A step that the user wrote."""

    def __init__(self, scale: float = 10.0, bias: bool = False) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, queries: Tensor, candidates: Tensor, negatives: Tensor | None = None) -> Tensor:
        return nce(queries * 1, candidates) * self.scale


def chunked(q: Tensor, c: Tensor, chunk_size: int = 2) -> Tensor:
    return nce(q, c)


def test_a_users_step_says_by_its_parameters_what_it_can() -> None:
    made = wrap_step(Scaled, "mine.py:Scaled")()
    assert (made.takes_negatives, made.needs_negatives, made.is_chunked, made.is_accumulated) == (
        True,
        False,
        False,
        False,
    )
    assert step_gradient(made, TRIAL, StepCall()).parameters.keys() == {"scale"}
    assert wrap_step(Scaled, "mine.py:Scaled")(scale=3.0).build().scale.item() == 3.0
    other = wrap_step(chunked, "mine.py:chunked")()
    assert other.is_chunked and not other.takes_negatives


@pytest.mark.parametrize("step", [lambda q: q, lambda q, c, d: q, lambda *both: both])
def test_a_step_of_other_parameters_is_refused(step: Callable[..., Tensor]) -> None:
    with pytest.raises(SpecError, match=r"must be called as step\(queries, candidates\)"):
        wrap_step(step, "mine.py:step")


def test_options_of_a_library_are_words_and_numbers() -> None:
    given = keyword_arguments("scale=50 rate=0.5 sides=a+b on=true none=none word=x")
    assert given == {"scale": 50, "rate": 0.5, "sides": ("a", "b"), "on": True, "none": None, "word": "x"}
    assert keyword_arguments("") == {}
    for text in ("scale", "scale=3 x", "2x=3"):
        with pytest.raises(SpecError, match="options must be KEY=VALUE"):
            keyword_arguments(text)


class Loss:
    """One option."""

    def __init__(self, margin: float = 0.2) -> None:
        if margin < 0:
            raise ValueError("margin must be positive")
        self.margin = margin


def test_a_library_that_is_not_there_and_a_class_that_is_none_are_said() -> None:
    with pytest.raises(InputError, match=r"nowhere must be installed to check its losses; .*pip install nowhere"):
        load_class("nowhere.losses", "Loss", "nowhere")
    with pytest.raises(SpecError, match=r"loss must be a class of torch.nn, such as .*TripletMarginLoss.*; got 'Nope'"):
        load_class("torch.nn", "Nope", "torch")
    assert construct(Loss, {"margin": 0.5}, {"other": 1}).margin == 0.5
    with pytest.raises(SpecError, match="Loss must be given some of margin; got tau"):
        construct(Loss, {"tau": 0.5}, {})
    with pytest.raises(SpecError, match="Loss cannot be built of margin; margin must be positive"):
        construct(Loss, {"margin": -1.0}, {})
