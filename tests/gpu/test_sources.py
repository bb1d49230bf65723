"""Do checkpoints, arrays, users' losses and other libraries give the numbers of the CPU on the device?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import lossscope
from lossscope.engine.sweep import Sweep
from lossscope.live.monitor import LossScope
from lossscope.retrieval.trec import write_run_files
from lossscope.sources.base import load
from tests.gpu.small_split import assert_near, small_split


def own_loss(S: Tensor) -> Tensor:
    """Return a loss as users write it."""
    target = torch.arange(len(S), device=S.device)
    return cross_entropy(S / 0.1, target) + cross_entropy(S.T / 0.1, target)


def test_a_loss_of_ones_own(device: torch.device) -> None:
    data = small_split()
    sweep = Sweep((own_loss,), ("cocos", "weight_mass"), batch_size=16)
    assert_near(sweep.run(data.to(device)).summary, sweep.run(data).summary, 1e-8)


def test_tensors_that_are_diagnosed(device: torch.device) -> None:
    data = small_split()
    assert data.images is not None and data.captions is not None
    options = {"caption_image": data.caption_image, "batch_size": 16}
    expected = lossscope.diagnose((data.images, data.captions), ["cocos", "similarity"], "ntxent", **options)
    there = data.images.to(device), data.captions.to(device)
    ours = lossscope.diagnose(there, ["cocos", "similarity"], "ntxent", **options)
    assert_near(ours.rows, expected.rows, 1e-8)


def test_gradients_of_the_layers_of_a_checkpoint(tiny_checkpoint: Path, device: torch.device) -> None:
    sweep = Sweep(("ntxent",), ("parameter_gradients", "cocos"), batch_size=16)
    expected, ours = (
        sweep.run(load(tiny_checkpoint, split="val", device=str(target), cache=False))
        for target in (torch.device("cpu"), device)
    )
    assert_near(ours.summary, expected.summary, 2e-3)


def test_a_checkpoint_in_train_mode(tiny_checkpoint: Path, device: torch.device) -> None:
    expected, ours = (
        load(tiny_checkpoint, split="val", device=str(target), cache=False, mode="train")
        for target in (torch.device("cpu"), device)
    )
    assert expected.images is not None and ours.images is not None
    torch.testing.assert_close(ours.images.cpu(), expected.images, rtol=1e-3, atol=1e-4)


def test_run_files(device: torch.device, tmp_path: Path) -> None:
    data = small_split()
    for name, split in (("expected", data), ("ours", data.to(device))):
        write_run_files(split, tmp_path / name, 5)
    for file in sorted((tmp_path / "expected").iterdir()):
        expected, ours = (
            (folder / file.name).read_text().splitlines() for folder in (tmp_path / "expected", tmp_path / "ours")
        )
        assert [line.split()[:4] for line in ours] == [line.split()[:4] for line in expected]


@pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss", "MultiSimilarityLoss", "TripletMarginLoss"])
def test_losses_of_pytorch_metric_learning(name: str, device: torch.device) -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    rows = []
    labels = torch.arange(4).repeat_interleave(3)
    for target in (torch.device("cpu"), device):
        scope = LossScope(probes=("similarity", "cocos"))
        x = torch.randn(12, 6, generator=torch.Generator().manual_seed(0)).to(target).requires_grad_()
        scope.wrap(getattr(losses, name)())(x, labels.to(target)).backward()
        assert x.grad is not None
        rows.append(dict(scope.history[-1]))
    assert rows[0].keys() == rows[1].keys()
    for column, value in rows[0].items():
        np.testing.assert_allclose(rows[1][column], value, rtol=1e-4, atol=1e-4, err_msg=column)
