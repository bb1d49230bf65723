"""Is the slope of meta_spn's outer step that of the validation loss one step ahead, and does a run keep the net?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.core.similarity import pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.engine.sweep import Sweep
from lossscope.registry import build, spec_of
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.components import resolve
from lossscope.training.data_parallel import StepSeed
from lossscope.training.forward import BatchInputs, Forward, batch_loss
from lossscope.training.loop import train
from lossscope.training.meta_step import MetaBatches, VirtualStep, meta_step, validation_batch
from lossscope.training.recipe import Recipe
from lossscope.training.state import TrainState, new_state
from lossscope.training.task import Task, prepare_task

TINY = Recipe(
    data="scenes:train=30,val=10,test=10,size=16", encoder="vsepp:dim=16,words=8,width=4",
    objective="meta_spn:hidden=3", epochs=2, batch_size=16, lr=1e-3, warmup=0, clip=0,
)  # fmt: skip
SEED = StepSeed(TINY.seed, 0, 0)


@pytest.fixture(name="task")
def made(tmp_path: Path) -> Task:
    task = prepare_task(resolve(TINY), tmp_path / "run", "cpu")
    net: Any = task.objective.network()
    with torch.no_grad():  # away from the flat start, so that all weights matter
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    return task


def forward_of(task: Task, state: TrainState) -> Forward:
    return Forward(state.model, task.recipe.encoder, task.device, task.recipe.precision, task.processes)


def validation_inputs(task: Task) -> BatchInputs:
    batch = validation_batch(task.val.relations, task.recipe.batch_size, SEED)
    return BatchInputs(task.val_captions, batch, batch.mask(task.val.relations))


def ahead(task: Task, state: TrainState, batch: Any, lr: float) -> float:
    """Return the validation loss after a plain step on the batch with the current net, which the net is to lower."""
    before = {name: value.clone() for name, value in state.model.state_dict().items()}
    forward, inputs = forward_of(task, state), BatchInputs(task.captions, batch, batch.mask(task.train.relations))
    S = forward.run(inputs, SEED).S
    G = batch_loss(task.objective, S.detach(), inputs.mask, task.recipe.reduction, len(batch.captions)).gradient
    step = torch.autograd.grad(S, state.parameters(), G)
    with torch.no_grad():
        for p, g in zip(state.parameters(), step, strict=True):
            p.sub_(g, alpha=lr)
    val = validation_inputs(task)
    with torch.no_grad():
        S_val = forward.run(val, SEED).S
    state.model.load_state_dict(before)
    plain = build("objectives", "triplet_sh")
    return float(reduce_weights(both(plain, S_val, val.mask), 1.0, "sum", len(val.batch.captions)).value)


def test_the_net_follows_the_slope_of_the_validation_loss_one_step_ahead(task: Task) -> None:
    state = new_state(task)
    state.model.train()
    batch = next(task.sampling.batches(task.train.relations))
    forward, inputs = forward_of(task, state), BatchInputs(task.captions, batch, batch.mask(task.train.relations))
    S = forward.run(inputs, SEED).S
    G = batch_loss(task.objective, S.detach(), inputs.mask, task.recipe.reduction, len(batch.captions)).gradient
    net: Any = task.objective.network()
    before = [p.detach().clone() for p in net.parameters()]
    kept = {name: value.clone() for name, value in state.model.state_dict().items()}
    assert state.network_optimiser is not None
    meta_step(
        task.objective,
        state.network_optimiser,
        forward,
        MetaBatches(inputs, S, G, validation_inputs(task)),
        VirtualStep(task.recipe.lr, task.recipe.clip),
        SEED,
    )
    assert all(torch.equal(value, kept[name]) for name, value in state.model.state_dict().items())
    gradients = [p.grad.clone() for p in net.parameters()]
    moved = [p.detach() - b for p, b in zip(net.parameters(), before, strict=True)]
    assert any(bool(m.any()) for m in moved)
    with torch.no_grad():
        for p, b in zip(net.parameters(), before, strict=True):
            p.copy_(b)
    step, numeric, stated = 0.1, [], []
    for p, g in zip(net.parameters(), gradients, strict=True):
        for index in range(p.numel()):
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    p.view(-1)[index] += sign * step
                values.append(ahead(task, state, batch, task.recipe.lr))
                with torch.no_grad():
                    p.view(-1)[index] -= sign * step
            numeric.append((values[0] - values[1]) / (2 * step))
            stated.append(float(g.view(-1)[index]))
    ours, expected = torch.tensor(stated), torch.tensor(numeric)
    assert float(expected.abs().max()) > 0
    alike = torch.nn.functional.cosine_similarity(ours, expected, dim=0)
    assert float(alike) > 0.98
    assert float(task.recipe.lr * ours.norm() / expected.norm()) == pytest.approx(1, abs=0.3)


def test_training_learns_the_net_and_checkpoints_hold_it(tmp_path: Path) -> None:
    run = train(TINY, tmp_path / "run")
    first, last = (Checkpoint.load(path).objective_state for path in (run.epoch(1), run.epoch(2)))
    assert first is not None and last is not None
    assert not torch.equal(first["1.bias"], last["1.bias"])
    assert bool(first["1.bias"].any())


def test_a_probe_weighs_with_the_net_of_the_checkpoint(tmp_path: Path) -> None:
    run = train(TINY, tmp_path / "run")
    embedded = load(run.best, split="val", cache=False)
    assert embedded.objective is not None
    objective: Any = build("objectives", embedded.objective)
    assert objective.net == run.best
    S = embedded.similarity_block(*(torch.arange(5).numpy(), torch.arange(0, 25, 5).numpy()))
    mask = pair_mask(torch.arange(5))
    fresh_net = build("objectives", spec_of(replace(objective, net=None)))
    assert not torch.equal(objective(S, mask).W, fresh_net(S, mask).W)
    rows = Sweep(objectives=(embedded.objective,), batch_size=8).run(embedded).summary
    assert rows["objective"].unique().tolist() == [embedded.objective]


def test_the_shareable_form_keeps_the_net(tmp_path: Path) -> None:
    run = train(TINY, tmp_path / "run")
    checkpoint = Checkpoint.load(run.best)
    checkpoint.save(tmp_path / "shared.safetensors")
    again = Checkpoint.load(tmp_path / "shared.safetensors")
    assert again.objective_state is not None and checkpoint.objective_state is not None
    assert all(torch.equal(again.objective_state[n], t) for n, t in checkpoint.objective_state.items())
    assert again.weights.keys() == checkpoint.weights.keys()
    spec = load(tmp_path / "shared.safetensors", split="val", cache=False).objective
    assert spec is not None
    S, mask = torch.rand(4, 4), pair_mask(torch.arange(4))
    objective = build("objectives", f"meta_spn:hidden=3,net={run.best}")
    assert torch.equal(build("objectives", spec)(S, mask).W, objective(S, mask).W)
