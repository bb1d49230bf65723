"""Is the value of `lossscope.Loss` that of training, and its gradient W, in every form and for every objective?"""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lossscope
from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.registry import build, names
from lossscope.training.forward import batch_loss
from lossscope.training.loss_module import Loss
from tests.each import each

B, WIDTH = 6, 5
LABELS = torch.arange(B) // 2
OBJECTIVES = (*names("objectives"), "goal:triplet=cir,pair=sig-ms", "infonce:learn=true", "siglip:learn=false")


def vectors(seed: int, rows: int = B) -> Tensor:
    x = torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.requires_grad_()


def quiet(spec: str) -> Loss:
    """Return the loss after its warnings: of a stated gradient, and of a network."""
    loss = Loss(spec)
    loss._told.update(("value", "network"))
    return loss


def arguments_of(objective: Objective) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Return queries and documents; and a mask, if offline candidates stand behind the pairs."""
    if not objective.traits.required_info:
        return vectors(0), vectors(1), {}
    return vectors(0, 3 * B), vectors(1, 3 * B), {"mask": torch.eye(B, dtype=torch.bool)}


@each("spec", OBJECTIVES)
def test_value_and_gradient_are_those_of_training(spec: str) -> None:
    loss = quiet(spec)
    first, second, options = arguments_of(loss.objective)
    S = (first @ second.T).tanh().detach().requires_grad_()
    expected = batch_loss(loss.objective, S.detach(), pair_mask(torch.arange(B)), None, B)
    value = loss(S, **options)
    (3 * value).backward()
    assert S.grad is not None
    torch.testing.assert_close(S.grad, 3 * expected.gradient, rtol=1e-12, atol=1e-14)
    surrogate = (S.detach() * expected.gradient).sum()
    assert float(value.detach()) == pytest.approx(float(surrogate if expected.value is None else expected.value))


@each("spec", OBJECTIVES)
def test_gradients_of_embeddings_are_those_of_the_cosine(spec: str) -> None:
    loss = quiet(spec)
    first, second, options = arguments_of(loss.objective)
    found = torch.autograd.grad(loss(first, second, **options), [first, second])
    S = normalise(first) @ normalise(second).T
    W = batch_loss(loss.objective, S.detach(), pair_mask(torch.arange(B)), None, B).gradient
    for gradient, expected in zip(found, torch.autograd.grad((S * W).sum(), [first, second]), strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-13)


def test_labels_are_one_set_and_the_number_is_that_of_training() -> None:
    loss, x = Loss("supcon:tau=0.1"), vectors(0)
    S = normalise(x) @ normalise(x).T
    other = ~torch.eye(B, dtype=torch.bool)
    expected = batch_loss(loss.objective, S.detach(), Mask((LABELS[:, None] == LABELS) & other, other), None, B)
    assert expected.value is not None
    assert float(loss(x, LABELS).detach()) == pytest.approx(float(expected.value))


def test_mined_negatives_stand_behind_the_positives() -> None:
    queries, positives, negatives = vectors(0), vectors(1), vectors(2, 2 * B)
    S = (normalise(queries) @ normalise(torch.cat([positives, negatives])).T).detach()
    value = Loss("ntxent:tau=0.1")(queries, torch.cat([positives, negatives]))
    target = torch.arange(B)
    rows = nn.functional.cross_entropy(S / 0.1, target)
    columns = nn.functional.cross_entropy(S[:, :B].T / 0.1, target)
    assert float(value.detach()) == pytest.approx(float((rows + columns) / 2))


def test_a_mask_says_which_entries_match() -> None:
    S = vectors(0)[:, :B].tanh()
    match = torch.eye(B, WIDTH, dtype=torch.bool) | (torch.arange(B)[:, None] == B - 1)
    loss = Loss("supcon")
    by_bool, by_mask = loss(S, mask=match), loss(S, mask=lossscope.Mask(match, torch.ones_like(match)))
    assert torch.equal(by_bool, by_mask)
    expected = batch_loss(loss.objective, S.detach(), Mask(match, torch.ones_like(match)), None, WIDTH).value
    assert torch.equal(by_bool.detach(), expected)


@each("spec, names", [
    ("siglip", ["learnt.log_scale", "learnt.bias"]), ("infonce:learn=true", ["learnt.log_scale"]), ("ntxent", []),
])  # fmt: skip
def test_what_an_objective_learns_is_a_parameter(spec: str, names: list[str]) -> None:
    loss = Loss(spec)
    assert list(loss.state_dict()) == names == [name for name, _ in loss.named_parameters()]
    if not names:
        return
    S = (vectors(0) @ vectors(1).T).tanh().detach()
    loss.double()
    loss(S).backward()
    h = 1e-5
    for name, parameter in loss.named_parameters():
        values = []
        for sign in (1, -1):
            moved = copy.deepcopy(loss)
            with torch.no_grad():
                moved.get_parameter(name).add_(sign * h)
            values.append(float(moved(S).detach()))
        assert parameter.grad is not None
        assert float(parameter.grad) == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-6), name
    other = Loss(spec).double()
    other.load_state_dict(loss.state_dict())
    assert torch.equal(other(S), loss(S))


def test_a_stated_gradient_says_once_that_its_number_is_no_loss() -> None:
    loss = Loss("goal")
    with pytest.warns(
        UserWarning, match="goal states its gradient and has no loss value: the number .* is the sum of W∘S"
    ):
        loss(vectors(0), vectors(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(vectors(0), vectors(1))
    with pytest.warns(UserWarning, match="meta_spn learns its network in an outer step, which lossscope train takes"):
        Loss("meta_spn")(vectors(0), vectors(1))


def test_a_second_derivative_is_refused() -> None:
    x = vectors(0)
    with pytest.raises(InputError, match="Loss must be differentiated once; got create_graph=True"):
        torch.autograd.grad(Loss("ntxent")(x, vectors(1)), x, create_graph=True)


@each("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_autocast_compute_in_float32(dtype: torch.dtype) -> None:
    loss, x, y = Loss("unified"), vectors(0).detach().to(dtype), vectors(1).detach().to(dtype)
    expected = loss(x.float(), y.float())
    leaf = x.clone().requires_grad_()
    value = loss(leaf, y)
    value.backward()
    assert value.dtype == torch.float32 and torch.equal(value.detach(), expected)
    assert leaf.grad is not None and leaf.grad.dtype == dtype
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(loss(x.float(), y.float()), expected)


@pytest.mark.thorough
@each("backend", ["eager", "inductor"])
def test_a_compiled_loss_gives_the_same_numbers(backend: str) -> None:
    net, loss = nn.Linear(WIDTH, WIDTH, dtype=torch.float64), Loss("ntxent:tau=0.1")

    def step(x: Tensor, y: Tensor) -> Tensor:
        value: Tensor = loss(net(x), net(y))
        return value

    results = []
    for is_compiled in (False, True):
        net.zero_grad()
        with warnings.catch_warnings(action="ignore"):  # of torch._dynamo and torch._inductor
            function = torch.compile(step, backend=backend) if is_compiled else step
            value = function(vectors(0).detach(), vectors(1).detach())
        value.backward()
        results.append((value.detach(), net.weight.grad.clone()))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)


def test_it_is_copied_and_pickled() -> None:
    loss, x, y = Loss("siglip:scale=5"), vectors(0).detach(), vectors(1).detach()
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(other(x, y), loss(x, y))
        assert str(other) == str(loss)


@each("arguments, options, message", [
    ((vectors(0, 1), vectors(1, 1)), {}, "a batch must have 2 pairs or more, as a single pair has no negative; got 1"),
    ((vectors(0).long(), vectors(1)), {}, "S or embeddings must be floating point; got torch.int64"),
    ((vectors(0), vectors(1)[:, :3]), {}, r"embeddings must be \(n, d\) and \(m, d\) with one d"),
    ((vectors(0), vectors(1, B + 1)), {}, r"documents must be b \(1 \+ k\) rows.*got 7 of 6 queries"),
    ((vectors(0)[0],), {}, r"S or embeddings must be a matrix; got \(5,\)"),
    ((vectors(0), LABELS[:3]), {}, r"labels must be a tensor of a whole number per item, \(6,\); got \(3,\)"),
    ((vectors(0), LABELS / 2), {}, r"a whole number per item, \(6,\); got \(6,\) of torch.float32"),
    ((vectors(0, 1), LABELS[:1]), {}, "a batch must have 2 items or more"),
    ((vectors(0), vectors(1, B).long()), {}, "documents must be floating point"),
    ((vectors(0), [1, 2]), {}, "the second argument must be documents or labels, a tensor; got list"),
    ((vectors(0), vectors(1)), {"mask": torch.eye(3, dtype=torch.bool)}, r"mask must be bool \(6, 6\)"),
    ((vectors(0), vectors(1)), {"mask": torch.eye(B)}, "mask must be bool .* of torch.float32"),
    ((vectors(0), LABELS), {"mask": torch.eye(B).bool()}, "labels and indices_tuple say which items match, and so"),
    ((vectors(0) * math.nan, vectors(1)), {}, "valid similarities must be finite; got nan at row 0, column 0"),
    ((vectors(0), LABELS, None, vectors(1, 9)), {}, r"ref_labels must be a tensor of a whole number per item, \(9,\)"),
])  # fmt: skip
def test_bad_arguments_are_refused_in_words(arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Loss("supcon")(*arguments, **options)


def test_what_is_no_objective_is_refused() -> None:
    for thing in (nn.MSELoss(), lambda S: S.sum()):
        with pytest.raises(InputError, match=r"A function or module that computes a loss trains by itself"):
            Loss(thing)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"offline candidates must get S \(3 B, 3 B\) .*; got S \(6, 6\) and no mask"):
        Loss("aoq")(vectors(0), vectors(1))
    assert str(Loss(build("objectives", "ntxent:tau=0.2"))) == "Loss(ntxent:tau=0.2)"
