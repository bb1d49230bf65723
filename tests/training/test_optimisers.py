"""Does the optimiser of a recipe have rates per group, frozen groups and schedules, and does it resume after a stop?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
import torch
from torch import nn

from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.training.optimisers import build_optimiser, learning_rate, loss_factor, set_rates
from lossscope.training.recipe import Recipe


class Two(Encoder):
    def __init__(self) -> None:
        super().__init__()
        self.bert, self.rest, self.still = nn.Linear(2, 2), nn.Linear(2, 1), nn.Parameter(torch.ones(1), False)

    def parameter_groups(self) -> Mapping[str, Iterable[nn.Parameter]]:
        return {"bert": self.bert.parameters(), "other": [self.still]}


def step(model: Two, optimiser: torch.optim.Optimizer) -> None:
    optimiser.zero_grad()
    model.rest(model.bert(torch.ones(3, 2))).sum().backward()
    optimiser.step()


def moved(model: Two, recipe: Recipe, epoch: int) -> tuple[float, float]:
    """Return the length of an Adam step of both layers, in multiples of the recipe's rate."""
    before = [p.detach().clone() for p in (model.bert.weight, model.rest.weight)]
    optimiser = build_optimiser(recipe, model)
    set_rates(optimiser, recipe, epoch, 0, 10)
    step(model, optimiser)
    after = (model.bert.weight, model.rest.weight)
    first, second = (float((a.detach() - b).abs().mean()) / recipe.lr for a, b in zip(after, before, strict=True))
    return first, second


def test_a_named_group_has_a_rate_of_its_own() -> None:
    assert moved(Two(), Recipe(lr=0.01, lr_groups="bert=0.1"), 0) == pytest.approx((0.1, 1.0), rel=1e-3)
    assert moved(Two(), Recipe(lr=0.01), 0) == pytest.approx((1.0, 1.0), rel=1e-3)


def test_a_group_waits_and_then_learns() -> None:
    model, recipe = Two(), Recipe(lr=0.01, freeze="bert=2")
    assert moved(model, recipe, 0) == pytest.approx((0.0, 1.0), rel=1e-3)
    assert not model.bert.weight.requires_grad
    optimiser = build_optimiser(recipe, Two())
    for epoch, waits in ((1, True), (2, False)):
        set_rates(optimiser, recipe, epoch, 0, 10)
        assert optimiser.param_groups[1]["params"][0].requires_grad is not waits


def test_what_never_learns_stays_out() -> None:
    model = Two()
    known = [p for group in build_optimiser(Recipe(lr_groups="other=2"), model).param_groups for p in group["params"]]
    assert all(p is not model.still for p in known)
    with pytest.raises(InputError, match=r"lr-groups and freeze must name groups of .* \(bert, other\); got 'cnn'"):
        build_optimiser(Recipe(lr_groups="cnn=1"), model)


@pytest.mark.parametrize("kind", ["adam", "adamw", "ranger"])
def test_a_stopped_optimiser_goes_on_to_the_same_bits(kind: str) -> None:
    if kind == "ranger":
        pytest.importorskip("pytorch_optimizer")
    recipe = Recipe(lr=0.01, optimiser=kind, weight_decay=0.1, lr_groups="bert=0.5")  # type: ignore[arg-type]
    torch.manual_seed(0)
    whole, parted = Two(), Two()
    parted.load_state_dict(whole.state_dict())
    optimiser, first = build_optimiser(recipe, whole), build_optimiser(recipe, parted)
    for _ in range(8):
        step(whole, optimiser)
    for _ in range(5):
        step(parted, first)
    second = build_optimiser(recipe, parted)
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        step(parted, second)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parted.parameters(), strict=True))


def test_weight_decay_shrinks_only_where_set() -> None:
    model = Two()
    optimiser = build_optimiser(Recipe(lr=0.1, optimiser="adamw", weight_decay=0.5), model)
    before = model.bert.weight.detach().clone()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.step()
    torch.testing.assert_close(model.bert.weight, before * 0.95)


class Spared(Two):
    def uses_weight_decay(self, name: str) -> bool:
        return "bias" not in name


def test_weight_decay_spares_what_the_model_says() -> None:
    model, recipe = Spared(), Recipe(lr=0.1, optimiser="adamw", weight_decay=0.5, lr_groups="bert=0.5")
    optimiser = build_optimiser(recipe, model)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    set_rates(optimiser, recipe, 0, 0, 10)
    optimiser.step()
    for name, p in model.named_parameters():
        kept = 1.0 if "bias" in name or name == "still" else 0.975 if "bert" in name else 0.95
        torch.testing.assert_close(p.detach(), before[name] * kept)


def test_the_rate_falls_in_steps() -> None:
    recipe = Recipe(lr=1.0, lr_step=2, lr_gamma=0.5)
    assert [learning_rate(recipe, epoch) for epoch in range(5)] == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_a_linear_schedule_rises_and_falls_to_nothing() -> None:
    recipe = Recipe(lr=1.0, schedule="linear", lr_warmup=0.1, epochs=2)
    rates = [learning_rate(recipe, epoch, step, 10) for epoch in range(2) for step in range(10)]
    assert rates[:2] == [0.5, 1.0]
    assert rates[2:] == pytest.approx([(20 - done) / 18 for done in range(2, 20)])
    flat = Recipe(lr=1.0, schedule="linear", epochs=1)
    assert [learning_rate(flat, 0, step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]


def test_the_loss_grows_in_the_epoch_of_the_ramp_only() -> None:
    recipe = Recipe(loss_ramp_epoch=2)
    assert [loss_factor(recipe, epoch, 3, 10) for epoch in range(3)] == [1.0, 0.3, 1.0]
    assert loss_factor(Recipe(), 0, 0, 10) == 1.0
