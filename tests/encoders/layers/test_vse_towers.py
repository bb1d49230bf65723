"""The frozen network's leak: does a run that stops within an epoch resume in the same mode?"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.layers.vse_towers import CnnTower
from lossscope.errors import Interrupted
from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe

STEPS, LEAK = 5, 3  # steps of an epoch; the leak comes after steps 3, 6 and 9


class Tiny(nn.Module):
    """A network with a batch norm; takes any file of weights, for any depths."""

    width = 6

    def __init__(self, depths: tuple[int, ...], weights: Path | None = None) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, self.width, 4, 4), nn.BatchNorm2d(self.width)
        if weights is not None:
            self.load_state_dict(torch.load(weights, weights_only=True))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.bn1(self.conv1(pixels)).relu().mean((2, 3))  # type: ignore[no-any-return]


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setattr("lossscope.encoders.layers.pooled_resnet.Resnet", Tiny)
    monkeypatch.setattr(CnnTower, "LEAK_EVERY", LEAK)
    torch.manual_seed(0)
    torch.save(Tiny(()).state_dict(), tmp_path / "tiny.pt")
    encoder = f"vsepp:image=resnet18,dim=8,words=4,bn_mode=original,weights={tmp_path}/tiny.pt"
    data = "scenes:train=30,val=10,test=10,size=16"
    return Recipe(data=data, encoder=encoder, objective="ntxent", epochs=2, batch_size=32, lr=0.002)


def stop_after(steps: int) -> Callable[[str, int, int], None]:
    """Return a progress listener that presses Ctrl-C after a number of steps."""
    done: list[str] = []

    def progress(label: str, _step: int, _total: int) -> None:
        if label.startswith("epoch"):
            done.append(label)
            if len(done) == steps:
                signal.raise_signal(signal.SIGINT)

    return progress


def state(run: Run) -> dict[str, Any]:
    return {f"{k}:{name}": v for k in (1, 2) for name, v in Checkpoint.load(run.epoch(k)).weights.items()}


def test_a_resumed_run_has_the_leak_of_an_unbroken_one(recipe: Recipe, tmp_path: Path) -> None:
    whole = train(recipe, tmp_path / "whole")
    expected = state(whole)
    assert [int(expected[f"{k}:image.steps"]) for k in (1, 2)] == [STEPS, 2 * STEPS]
    assert int(expected["1:image.cnn.bn1.num_batches_tracked"]) == LEAK  # eval from there to the end of the epoch
    assert int(expected["2:image.cnn.bn1.num_batches_tracked"]) == LEAK + 1  # the leak of step 6 is that of epoch 2
    for steps in (2, 3, 4, STEPS, STEPS + 1, STEPS + 3):
        with pytest.raises(Interrupted):
            train(recipe, tmp_path / f"run{steps}", observers=Observers(progress=stop_after(steps)))
        run = resume(tmp_path / f"run{steps}")
        weights = state(run)
        assert [name for name, value in expected.items() if not torch.equal(weights[name], value)] == [], steps
        assert run.trajectory.read_bytes() == whole.trajectory.read_bytes()


def test_another_batch_norm_mode_counts_nothing() -> None:
    tower = CnnTower(Tiny(()), 6, 4, finetune=False, batch_norms="ecir").train()
    tower(torch.zeros(2, 3, 16, 16))
    assert int(tower.steps) == 0
    assert not {"steps", "leaked"} & tower.state_dict().keys()
