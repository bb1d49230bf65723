"""Residual networks: torchvision's weights give torchvision's features, and the frozen tower stays frozen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.pooled_resnet import DEPTHS, Resnet, identify_resnet
from lossscope.encoders.vsepp import VSEPP
from lossscope.errors import InputError
from tests.each import each


@pytest.fixture(scope="module")
def weights(oracle: Callable[[str], ModuleType], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "resnet18.pth"
    torch.save(oracle("resnet").random("resnet18").state_dict(), path)
    return path


def tower(weights: Path | None, finetune: bool) -> Encoder:
    return VSEPP(image="resnet18", dim=8, words=4, weights=weights, finetune=finetune).build((3, 32, 32), 10)


@each("name", ["resnet18", "resnet50"])
def test_torchvisions_weights_give_torchvisions_features(
    name: str, oracle: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    theirs = oracle("resnet").random(name)
    torch.save(theirs.state_dict(), tmp_path / "weights.pth")
    ours = Resnet(DEPTHS[name], tmp_path / "weights.pth").eval()
    pixels = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, features = theirs(pixels), ours(pixels)
    assert features.shape == (2, ours.width)
    assert float(expected.abs().max()) > 0.1
    assert torch.allclose(features, expected, rtol=1e-4, atol=1e-4)


def test_names_with_module_in_front_are_the_same(weights: Path, tmp_path: Path) -> None:
    state = torch.load(weights, weights_only=True)
    torch.save({"state_dict": {f"module.{key}": value for key, value in state.items()}}, tmp_path / "dp.pth")
    pairs = zip(
        Resnet(DEPTHS["resnet18"], weights).state_dict().values(),
        Resnet(DEPTHS["resnet18"], tmp_path / "dp.pth").state_dict().values(),
        strict=True,
    )
    assert all(torch.equal(a, b) for a, b in pairs)


def test_weights_that_do_not_fit_are_named(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a network of this depth"):
        Resnet(DEPTHS["resnet50"], weights)
    state = torch.load(weights, weights_only=True)
    less = {key: value for key, value in state.items() if key != "layer2.0.downsample.0.weight"}
    torch.save(less, tmp_path / "less.pth")
    with pytest.raises(InputError, match=r"missing \['layer2.0.downsample.0.weight'\] \(1\)"):
        Resnet(DEPTHS["resnet18"], tmp_path / "less.pth")
    torch.save({**state, "conv1.weight": torch.zeros(64, 3, 3, 3)}, tmp_path / "other.pth")
    with pytest.raises(InputError, match=r"must be \(64, 3, 7, 7\); got \(64, 3, 3, 3\)"):
        Resnet(DEPTHS["resnet18"], tmp_path / "other.pth")
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(InputError, match="neither a zip nor a pickle"):
        Resnet(DEPTHS["resnet18"], tmp_path / "text.pth")


def test_a_frozen_tower_stays_in_eval_mode_and_has_no_gradients(weights: Path) -> None:
    model = tower(weights, finetune=False).train()
    cnn = model.image.cnn
    before = {key: value.clone() for key, value in cnn.state_dict().items()}
    model.encode_images(torch.randint(0, 255, (2, 3, 32, 32), dtype=torch.uint8)).vectors.sum().backward()
    assert not cnn.training
    assert all(parameter.grad is None for parameter in cnn.parameters())
    assert model.image.fc.weight.grad is not None
    assert all(torch.equal(value, before[key]) for key, value in cnn.state_dict().items())


def test_a_finetuned_tower_trains(weights: Path) -> None:
    model = tower(weights, finetune=True).train()
    model.encode_images(torch.randint(0, 255, (2, 3, 32, 32), dtype=torch.uint8)).vectors[:, 0].sum().backward()
    assert model.image.cnn.training
    assert all(parameter.grad is not None for parameter in model.image.cnn.parameters())


def test_maps_averaged_are_the_features(weights: Path) -> None:
    net, pixels = Resnet(DEPTHS["resnet18"], weights).eval(), torch.randn(1, 3, 64, 96)
    with torch.no_grad():
        assert net.maps(pixels).shape == (1, 512, 2, 3)
        assert torch.allclose(net.maps(pixels).mean((2, 3)), net(pixels))


def test_files_without_batch_counters_are_read(weights: Path, tmp_path: Path) -> None:
    state = torch.load(weights, weights_only=True)
    torch.save({k: v for k, v in state.items() if not k.endswith("num_batches_tracked")}, tmp_path / "old.pth")
    net = Resnet(DEPTHS["resnet18"], tmp_path / "old.pth")
    assert torch.equal(net.bn1.running_mean, state["bn1.running_mean"])
    assert int(net.bn1.num_batches_tracked) == 0


@each("name", list(DEPTHS))
def test_names_of_blocks_identify_the_network(name: str) -> None:
    with torch.device("meta"):
        names = list(Resnet(DEPTHS[name]).state_dict())
    assert identify_resnet(names) == name
    with pytest.raises(InputError, match="a residual network must be one of resnet18"):
        identify_resnet(key for key in names if not key.startswith("layer3.1."))
