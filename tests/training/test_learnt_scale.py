"""Are the gradients of scale and bias those of autograd through z = scale · S + bias, and do runs keep both?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from lossscope.core.similarity import pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.errors import Interrupted
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.learnt_scale import LearntScale, learnt_scale_of
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe

TINY = Recipe(
    data="scenes:train=30,val=10,test=10,size=16",
    encoder="vsepp:dim=16,words=8,width=4",
    epochs=2,
    batch_size=32,
    lr=0.01,
)
B = 6


def test_most_objectives_learn_nothing_beside_the_encoder() -> None:
    assert learnt_scale_of(build("objectives", "ntxent")) is None
    assert learnt_scale_of(build("objectives", "infonce:learn=false")) is None


@pytest.mark.parametrize("spec", ["infonce:tau=0.1", "siglip:scale=5,bias=-2"])
def test_gradients_are_those_of_autograd_through_the_scale_and_the_bias(spec: str) -> None:
    objective = build("objectives", spec)
    learnt = LearntScale(objective).double()
    S = torch.rand(B, B, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = both(objective, S, pair_mask(torch.arange(B)))
    loss = reduce_weights(weights, objective.traits.directions, objective.traits.reduction, B)
    learnt.set_gradients(S, loss.gradient, objective)

    log_scale = torch.tensor(objective.learnable["scale"], dtype=torch.float64).log().requires_grad_()
    bias = torch.tensor(objective.learnable.get("bias", 0.0), dtype=torch.float64, requires_grad=True)
    z, y = log_scale.exp() * S + bias, torch.arange(B)
    if "bias" in objective.learnable:
        value = -nn.functional.logsigmoid((2 * torch.eye(B) - 1) * z).sum() / B
    else:
        value = (nn.functional.cross_entropy(z, y) + nn.functional.cross_entropy(z.T, y)) / 2
    value.backward()
    torch.testing.assert_close(loss.value, value.detach())
    torch.testing.assert_close(learnt.log_scale.grad, log_scale.grad, rtol=1e-5, atol=1e-8)
    if learnt.bias is not None:
        torch.testing.assert_close(learnt.bias.grad, bias.grad, rtol=1e-5, atol=1e-8)


def test_checkpoints_state_what_was_learnt(tmp_path: Path) -> None:
    run = train(replace(TINY, objective="siglip"), tmp_path / "run")
    begin, end = (build("objectives", Checkpoint.load(path).objective) for path in (run.epoch(1), run.epoch(2)))
    assert begin.scale != 10
    assert begin.bias != -10
    assert (end.scale, end.bias) != (begin.scale, begin.bias)
    assert build("objectives", read_recipe(run.config).objective).scale == 10


def test_a_learnt_scale_stays_below_its_limit(tmp_path: Path) -> None:
    run = train(replace(TINY, objective="infonce:tau=0.0101", lr=0.3), tmp_path / "run")
    assert build("objectives", Checkpoint.load(run.epoch(2)).objective).tau >= 0.01


@pytest.mark.parametrize("objective", ["siglip", "meta_spn"])
def test_what_is_learnt_beside_the_encoder_resumes_to_the_same_bits(objective: str, tmp_path: Path) -> None:
    recipe = replace(TINY, objective=objective, warmup=0, sampling="pairs")
    whole = train(recipe, tmp_path / "whole")
    steps: list[str] = []

    def stop(label: str, _done: int, _total: int) -> None:
        steps.append(label)
        if sum(name.startswith("epoch") for name in steps) == 7:
            import signal

            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        train(recipe, tmp_path / "broken", observers=Observers(progress=stop))
    broken = resume(tmp_path / "broken")
    for name in ("metrics.csv", "trajectory.csv"):
        assert (broken.path / name).read_bytes() == (whole.path / name).read_bytes()
    ours, theirs = (Checkpoint.load(run.last).objective_state for run in (broken, whole))
    assert ours is not None and theirs is not None
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
