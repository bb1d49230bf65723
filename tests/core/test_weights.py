"""Does training through W equal training through the loss: same value and gradients, for each loss and reduction?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, group_mask, normalise, pair_mask
from lossscope.core.weights import Weights, backward, both, reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.registry import build
from tests.each import each

B, K = 8, 3


def hinge(S: Tensor, margin: float = 0.2) -> Tensor:
    """Return (B, B) violations of a row's negatives; positives are on the diagonal."""
    return (margin + S - S.diag()[:, None]).clamp(min=0) * (1 - torch.eye(len(S), dtype=S.dtype))


def triplet(S: Tensor) -> Tensor:
    return hinge(S).sum() + hinge(S.T).sum()


def triplet_sh(S: Tensor) -> Tensor:
    return hinge(S).max(1).values.sum() + hinge(S.T).max(1).values.sum()


def ntxent(S: Tensor) -> Tensor:
    target = torch.arange(len(S))
    return (nn.functional.cross_entropy(S / 0.1, target) + nn.functional.cross_entropy(S.T / 0.1, target)) / 2


def vlc(S: Tensor) -> Tensor:
    return -torch.stack([(rows * 50).log_softmax(1).diag().sum() for rows in (S, S.T)]).sum()


def unified(S: Tensor) -> Tensor:
    negative = 1 - torch.eye(len(S), dtype=S.dtype)
    excess = [(60 * (rows - rows.diag()[:, None] + 0.2)).exp() * negative for rows in (S, S.T)]
    return torch.stack([e.sum(1).log1p().sum() / 60 for e in excess]).sum()


def smoothap(S: Tensor) -> Tensor:
    """Return SmoothAP of images against K captions each, in image order."""
    i2t = torch.stack([average_precision(row, list(range(K * i, K * i + K))) for i, row in enumerate(S)])
    t2i = torch.stack([average_precision(row, [c // K]) for c, row in enumerate(S.T)])
    return ((1 - i2t).mean() + (1 - t2i).mean()) / 2


def average_precision(row: Tensor, relevant: list[int]) -> Tensor:
    parts = []
    for i in relevant:
        above = ((row - row[i]) / 0.01).sigmoid() * (torch.arange(len(row)) != i)
        parts.append((1 + above[relevant].sum()) / (1 + above.sum()))
    return torch.stack(parts).mean()


REDUCED: dict[str, Callable[[Tensor], Tensor]] = {
    "triplet": triplet,
    "triplet_sh": triplet_sh,
    "ntxent": ntxent,
    "vlc": vlc,
    "unified": unified,
    "smoothap": smoothap,
}


class TwoTowers(nn.Module):
    """Two layers on each side and unit rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 6)).double()
        self.text = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 6)).double()

    def forward(self, images: Tensor, captions: Tensor) -> Tensor:
        return normalise(self.image(images)) @ normalise(self.text(captions)).T


def batch(objective: Objective) -> tuple[Tensor, Tensor, Mask]:
    rows = torch.arange(B)
    many = objective.traits.positives == "many"
    torch.manual_seed(1)
    images, captions = torch.randn(B, 5).double(), torch.randn(B * K if many else B, 7).double()
    return images, captions, group_mask(rows, rows.repeat_interleave(K)) if many else pair_mask(rows)


def parameter_gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@each("name", REDUCED)
def test_training_through_w_is_training_through_the_loss(name: str) -> None:
    objective: Any = build("objectives", name)
    images, captions, mask = batch(objective)
    through_w, through_loss = TwoTowers(), TwoTowers()
    S = through_w(images, captions)
    result = reduce_weights(both(objective, S, mask), objective.traits.directions, objective.traits.reduction, B)
    backward(S, result.gradient)
    expected = REDUCED[name](through_loss(images, captions))
    expected.backward()
    assert result.value is not None
    torch.testing.assert_close(result.value, expected.detach(), rtol=1e-12, atol=0)
    ours, theirs = parameter_gradients(through_w), parameter_gradients(through_loss)
    assert float(theirs.abs().max()) > 1e-3
    assert float((ours - theirs).abs().max()) <= 1e-12 * float(theirs.abs().max())


def test_every_gradient_trains_too() -> None:
    objective = build("objectives", "goal:triplet=nca,pair=sig")
    images, captions, mask = batch(objective)
    model = TwoTowers()
    S = model(images, captions)
    result = reduce_weights(both(objective, S, mask), objective.traits.directions, objective.traits.reduction, B)
    assert result.value is None
    backward(S, result.gradient)
    assert float(parameter_gradients(model).abs().max()) > 0


@each("scale", [0.25, torch.tensor(0.25, dtype=torch.float64)])
def test_backward_scales_the_gradient_and_keeps_the_type_of_s(scale: float | Tensor) -> None:
    leaf = torch.rand(2, 3, requires_grad=True)
    G = torch.rand(2, 3, dtype=torch.float64)
    backward(leaf * 2, G, scale)
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, (G * 0.5).float())


def constant_weights(values: Tensor | None, usable: int) -> Weights:
    return Weights(torch.ones(4, 4), values, torch.arange(4) < usable)


@each(
    "reduction, i2t, t2i",
    [("sum", 1.0, 1.0), ("mean", 1 / 2, 1 / 4), ("pairs", 1 / 5, 1 / 5)],
    "directions",
    [1.0, 0.5],
)
def test_reductions_divide_by_nothing_usable_queries_or_pairs(
    reduction: Any, i2t: float, t2i: float, directions: float
) -> None:
    pair = Pair(constant_weights(torch.full((4,), 3.0), 2), constant_weights(torch.full((4,), 5.0), 4))
    result = reduce_weights(pair, directions, reduction, 5)
    assert result.value is not None
    assert float(result.value) == pytest.approx(directions * (12 * i2t + 20 * t2i))
    torch.testing.assert_close(result.gradient, torch.full((4, 4), directions * (i2t + t2i)))


def test_the_gradient_of_t2i_is_transposed_back() -> None:
    i2t, t2i = torch.rand(2, 3), torch.rand(3, 2)
    usable = (torch.ones(2, dtype=torch.bool), torch.ones(3, dtype=torch.bool))
    result = reduce_weights(Pair(Weights(i2t, None, usable[0]), Weights(t2i, None, usable[1])), 1.0, "sum", 3)
    assert torch.equal(result.gradient, i2t + t2i.T)
    assert result.value is None


@each("reduction", ["sum", "mean", "pairs"])
def test_nothing_usable_reduces_to_zero(reduction: Any) -> None:
    none = Weights(torch.zeros(3, 3), torch.zeros(3), torch.zeros(3, dtype=torch.bool))
    result = reduce_weights(Pair(none, none), 1.0, reduction, 0)
    assert result.value is not None
    assert float(result.value) == 0
    assert not result.gradient.any()


def test_an_unknown_reduction_raises_listing_the_choices() -> None:
    pair = Pair(constant_weights(None, 4), constant_weights(None, 4))
    with pytest.raises(InputError, match="one of sum, mean, pairs, cells; got 'median'"):
        reduce_weights(pair, 1.0, "median", 4)  # type: ignore[arg-type]


def test_a_pair_iterates_i2t_first_and_maps_both() -> None:
    pair = Pair(1, 2)
    assert list(pair) == [1, 2]
    assert pair.map(lambda x: x * 10) == Pair(10, 20)


def test_both_evaluates_each_direction() -> None:
    S = torch.rand(3, 3, dtype=torch.float64)
    objective, mask = build("objectives", "ntxent"), pair_mask(torch.arange(3))
    result = both(objective, S, mask)
    assert torch.equal(result.i2t.W, objective(S, mask).W)
    assert torch.equal(result.t2i.W, objective(S.T, mask.t()).W)


def test_both_takes_a_mask_for_each_direction() -> None:
    S = torch.rand(2, 2)
    pairs, none = pair_mask(torch.arange(2)), Mask(torch.zeros(2, 2) > 0, torch.ones(2, 2) > 0, direction="t2i")
    result = both(build("objectives", "triplet"), S, Pair(pairs, none))
    assert result.i2t.usable.all()
    assert not result.t2i.usable.any()
