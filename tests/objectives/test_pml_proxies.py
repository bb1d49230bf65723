"""Do arcface, cosface, proxy_anchor and ntxent equal the losses with class vectors of pytorch-metric-learning?"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, normalise
from lossscope.errors import InputError, SpecError
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.objectives.custom.class_vectors import equal_objective
from lossscope.registry import build
from tests.each import each

losses = pytest.importorskip("pytorch_metric_learning.losses")
ITEMS, CLASSES, WIDTH = 13, 6, 5
MADE: dict[str, Any] = {
    "ArcFaceLoss": {"margin": 28.6, "scale": 8},
    "CosFaceLoss": {"margin": 0.35, "scale": 8},
    "NormalizedSoftmaxLoss": {"temperature": 0.2},
    "ProxyAnchorLoss": {"margin": 0.1, "alpha": 4},
    "ProxyNCALoss": {"softmax_scale": 2.5},
}


def made(name: str) -> tuple[Any, Tensor, Tensor]:
    """Return a loss in float64, items of any length, and labels; class 5 has no item."""
    generator = torch.Generator().manual_seed(0)
    loss = getattr(losses, name)(CLASSES, WIDTH, **MADE[name]).double()
    for parameter in loss.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    items = torch.randn(ITEMS, WIDTH, generator=generator, dtype=torch.float64).requires_grad_()
    return loss, items, torch.randint(0, CLASSES - 1, (ITEMS,), generator=generator)


def vectors_of(loss: Any) -> Tensor:
    vectors: Tensor = loss.proxies if hasattr(loss, "proxies") else loss.W.t()
    return normalise(vectors)


def mask_of(labels: Tensor) -> Mask:
    match = torch.nn.functional.one_hot(labels, CLASSES).bool()
    return Mask(match, torch.ones_like(match))


@each("name", list(MADE))
def test_value_and_gradients_of_items_and_class_vectors_are_those_of_the_library(name: str) -> None:
    loss, items, labels = made(name)
    value = loss(items, labels)
    leaves = [items, *loss.parameters()]
    expected = torch.autograd.grad(value, leaves)
    spec = equal_objective(loss)
    assert spec is not None
    margin = {"margin": math.radians(28.6)} if name == "ArcFaceLoss" else {}
    objective = build("objectives", spec)
    objective = type(objective)(**{**vars(objective), **margin})  # the spec rounds it
    S = normalise(items) @ vectors_of(loss).T
    weights = objective(S.detach(), mask_of(labels))
    assert weights.values is not None
    torch.testing.assert_close(weights.values.mean(), value.detach(), rtol=1e-12, atol=1e-12)
    actual = torch.autograd.grad((S * weights.W).sum() / ITEMS, leaves)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_arcface_beyond_pi_minus_margin_is_the_line_of_the_library() -> None:
    loss, items, labels = made("ArcFaceLoss")
    items.data = -vectors_of(loss)[labels].detach() + 0.01 * items.data  # θ₊ near π
    S = normalise(items) @ vectors_of(loss).T
    weights = build("objectives", f"arcface:margin={math.radians(28.6)!r},scale=8")(S.detach(), mask_of(labels))
    assert weights.values is not None
    torch.testing.assert_close(weights.values.mean(), loss(items, labels).detach(), rtol=1e-12, atol=1e-12)


def test_an_item_on_its_class_vector_has_finite_weights_under_arcface() -> None:
    match = torch.tensor([[True, False]] * 3)
    S = torch.tensor([[1.0, 0.9], [-1.0, 0.9], [1.0 + 1e-7, 1.0]])
    W = build("objectives", "arcface:scale=4")(S, Mask(match, torch.ones_like(match))).W
    assert bool(W.isfinite().all()) and bool((W[:, 0] < 0).all())


def test_arcface_refuses_logits_as_their_angle_has_no_meaning() -> None:
    match = torch.tensor([[True, False]])
    with pytest.raises(InputError, match="arcface needs cosines, as its margin is an angle; got a similarity of 20"):
        build("objectives", "arcface")(torch.tensor([[20.0, 3.0]]), Mask(match, torch.ones_like(match)))


def test_proxy_nca_of_the_paper_is_dcl_and_that_of_the_library_has_the_positive_in_its_denominator() -> None:
    _, items, labels = made("ProxyNCALoss")
    proxies = normalise(torch.randn(CLASSES, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    unit = normalise(items.detach())
    squared = (unit[:, None] - proxies[None]).square().sum(2)
    near = (-squared).exp()
    positive = near[torch.arange(ITEMS), labels]
    weights = build("objectives", "dcl:tau=0.5")(unit @ proxies.T, mask_of(labels))
    torch.testing.assert_close(weights.values, -(positive / (near.sum(1) - positive)).log())


def test_cosface_without_margin_is_ntxent() -> None:
    loss, items, labels = made("CosFaceLoss")
    S = (normalise(items) @ vectors_of(loss).T).detach()
    actual, expected = (
        build("objectives", spec)(S, mask_of(labels)) for spec in ("cosface:margin=0,scale=8", "ntxent:tau=0.125")
    )
    torch.testing.assert_close(actual.W, expected.W)
    torch.testing.assert_close(actual.values, expected.values)


@each("spec, complaint", [
    ("arcface:margin=28.6", "angle of 0 to pi radians, 0.5 for 28.6 degrees; got 28.6"),
    ("arcface:scale=0", "scale must be > 0"),
    ("cosface:margin=-1", "margin must be >= 0 and scale > 0"),
    ("proxy_anchor:alpha=0", "alpha must be > 0 and margin >= 0"),
])  # fmt: skip
def test_wrong_margins_and_scales_raise(spec: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build("objectives", spec)


@pytest.mark.filterwarnings("ignore:__array_wrap__")  # scipy in the library
@each("name", [*MADE, "SphereFaceLoss", "SoftTripleLoss"])
def test_a_loss_with_class_vectors_is_no_objective_of_other_data_and_the_message_names_what_is(name: str) -> None:
    loss = getattr(losses, name)(num_classes=CLASSES, embedding_size=WIDTH)
    with pytest.raises(SpecError, match="class vectors, which only the loss has") as raised:
        as_objective(loss)
    spec = str(raised.value).partition("--objective ")[2].partition(" ")[0]
    assert build("objectives", spec) is not None
