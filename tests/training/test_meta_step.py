"""The outer step of meta_spn: its slope is that of the validation loss one step ahead, and training keeps the net."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.core.similarity import pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.engine.plan import Sweep
from lossscope.io.run_folder import Run
from lossscope.registry import build, spec_of
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.forward import batch_loss, similarities
from lossscope.training.loop import train
from lossscope.training.meta_step import _validation_batch, meta_step
from lossscope.training.recipe import Recipe
from lossscope.training.state import TrainState, new_state
from lossscope.training.task import Task, prepare_task

TINY = Recipe(
    data="scenes:train=30,val=10,test=10,size=16", encoder="vsepp:dim=16,words=8,width=4",
    objective="meta_spn:hidden=3", epochs=2, batch_size=16, lr=1e-3, warmup=0, clip=0,
)  # fmt: skip


@pytest.fixture(name="task")
def made(tmp_path: Path) -> Task:
    task = prepare_task(TINY.canonical(), Run(tmp_path / "run"), "cpu", 500, None, None, None)
    net: Any = task.main.network()
    with torch.no_grad():  # away from the flat beginning, so that all of its weights matter
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    return task


def ahead(task: Task, state: TrainState, batch: Any, lr: float) -> float:
    """The validation loss after one plain step on the batch with the net as it is: what the net is to lower."""
    mask = batch.mask(task.train.caption_image)
    before = {name: value.clone() for name, value in state.model.state_dict().items()}
    S, _, _ = similarities(task, state, task.sentences, batch, task.main, mask)
    G = batch_loss(task, task.main, S.detach(), mask, len(batch.captions)).gradient
    step = torch.autograd.grad(S, state.parameters(), G)
    with torch.no_grad():
        for p, g in zip(state.parameters(), step, strict=True):
            p.sub_(g, alpha=lr)
    val = _validation_batch(task, state)
    val_mask = val.mask(task.val.caption_image)
    with torch.no_grad():
        S_val, _, _ = similarities(task, state, task.val_sentences, val, task.main, val_mask)
    state.model.load_state_dict(before)
    plain = build("objectives", "triplet_sh")
    return float(reduce_weights(both(plain, S_val, val_mask), 1.0, "sum", len(val.captions)).value)


@pytest.mark.slow
def test_the_net_follows_the_slope_of_the_validation_loss_one_step_ahead(task: Task) -> None:
    state = new_state(task)
    state.model.train()
    batch = next(task.recipe.batches().batches(task.train.caption_image))
    mask = batch.mask(task.train.caption_image)
    S, _, _ = similarities(task, state, task.sentences, batch, task.main, mask)
    net: Any = task.main.network()
    before = [p.detach().clone() for p in net.parameters()]
    kept = {name: value.clone() for name, value in state.model.state_dict().items()}
    assert state.outer is not None
    meta_step(task, state, task.main, S, mask, batch)
    assert all(torch.equal(value, kept[name]) for name, value in state.model.state_dict().items())
    asked = [p.grad.clone() for p in net.parameters()]
    moved = [p.detach() - b for p, b in zip(net.parameters(), before, strict=True)]
    assert any(bool(m.any()) for m in moved)
    with torch.no_grad():
        for p, b in zip(net.parameters(), before, strict=True):
            p.copy_(b)
    step, numeric, stated = 0.1, [], []
    for p, g in zip(net.parameters(), asked, strict=True):
        for place in range(p.numel()):
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    p.view(-1)[place] += sign * step
                values.append(ahead(task, state, batch, task.recipe.lr))
                with torch.no_grad():
                    p.view(-1)[place] -= sign * step
            numeric.append((values[0] - values[1]) / (2 * step))
            stated.append(float(g.view(-1)[place]))
    found, expected = torch.tensor(stated), torch.tensor(numeric)
    assert float(expected.abs().max()) > 0
    alike = torch.nn.functional.cosine_similarity(found, expected, dim=0)
    assert float(alike) > 0.98
    assert float(task.recipe.lr * found.norm() / expected.norm()) == pytest.approx(1, abs=0.3)


@pytest.mark.slow
def test_training_learns_the_net_and_checkpoints_hold_it(tmp_path: Path) -> None:
    run = train(TINY, tmp_path / "run")
    first, last = (Checkpoint.load(path).objective_state for path in (run.epoch(1), run.epoch(2)))
    assert first is not None and last is not None
    assert not torch.equal(first["1.bias"], last["1.bias"])
    assert bool(first["1.bias"].any())


@pytest.mark.slow
def test_a_probe_weighs_with_the_net_of_the_checkpoint(tmp_path: Path) -> None:
    run = train(TINY, tmp_path / "run")
    embedded = load(run.best, split="val", cache=False)
    assert embedded.objective is not None
    objective: Any = build("objectives", embedded.objective)
    assert objective.net == run.best
    S = embedded.block(*(torch.arange(5).numpy(), torch.arange(0, 25, 5).numpy()))
    mask = pair_mask(torch.arange(5))
    fresh_net = build("objectives", spec_of(replace(objective, net=None)))
    assert not torch.equal(objective(S, mask).W, fresh_net(S, mask).W)
    rows = Sweep(objectives=(embedded.objective,), batch_size=8).run(embedded)[0]
    assert rows["objective"].unique().tolist() == [embedded.objective]


@pytest.mark.slow
def test_the_shareable_form_keeps_the_net(tmp_path: Path) -> None:
    run = train(TINY, tmp_path / "run")
    checkpoint = Checkpoint.load(run.best)
    checkpoint.save(tmp_path / "shared.safetensors")
    again = Checkpoint.load(tmp_path / "shared.safetensors")
    assert again.objective_state is not None and checkpoint.objective_state is not None
    assert all(torch.equal(again.objective_state[n], t) for n, t in checkpoint.objective_state.items())
    assert again.weights.keys() == checkpoint.weights.keys()
    found = load(tmp_path / "shared.safetensors", split="val", cache=False).objective
    assert found is not None
    S, mask = torch.rand(4, 4), pair_mask(torch.arange(4))
    own = build("objectives", f"meta_spn:hidden=3,net={run.best}")
    assert torch.equal(build("objectives", found)(S, mask).W, own(S, mask).W)
