"""Backbones: the original's names and shapes, the two strides, and files in all their forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.layers.grid_backbone import (
    Backbone,
    drop_duplicate_backbone,
    identify_backbone,
    read_backbone,
    torchvision_name,
)
from lossscope.encoders.layers.residual_network import RESNETS, ResidualNetwork, ResnetConfig
from lossscope.errors import InputError
from tests.each import each

SMALL = ResnetConfig((1, 1, 1, 1))


def shapes(name: str) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return {k: tuple(v.shape) for k, v in ResidualNetwork(RESNETS[name]).state_dict().items()}


@each(
    "name, tensors", [("resnet50", 318), ("resnet101", 624), ("resnet152", 930), ("resnext101", 624), ("detector", 624)]
)
def test_the_number_of_tensors_is_the_originals(name: str, tensors: int) -> None:
    assert len(shapes(name)) == tensors


def test_names_and_shapes_are_torchvisions() -> None:
    state_shapes = shapes("resnext101")
    assert state_shapes["conv1.weight"] == (64, 3, 7, 7)
    assert state_shapes["layer1.0.conv2.weight"] == (256, 8, 3, 3)
    assert state_shapes["layer4.0.conv2.weight"] == (2048, 64, 3, 3)
    assert state_shapes["layer4.0.downsample.0.weight"] == (2048, 1024, 1, 1)
    assert state_shapes["layer3.22.bn3.running_var"] == (2048 // 2,)
    assert shapes("resnet101")["layer1.0.conv2.weight"] == (64, 64, 3, 3)
    assert shapes("resnet18")["layer4.1.conv2.weight"] == (512, 512, 3, 3)


@each("name", ["resnet18", "resnet50"])
def test_maps_are_those_of_the_oracle(name: str, oracle: Callable[[str], ModuleType]) -> None:
    theirs = oracle("resnet").random(name)
    ours = ResidualNetwork(RESNETS[name]).eval()
    ours.load_state_dict({k: v for k, v in theirs.state_dict().items() if not k.startswith("fc.")})
    pixels = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, features = theirs(pixels), ours(pixels).mean((2, 3))
    assert float(expected.abs().max()) > 0.1
    assert torch.allclose(features, expected, rtol=1e-4, atol=1e-4)


def test_the_detectors_network_strides_in_the_first_convolution_and_pools_rounding_up() -> None:
    with torch.device("meta"):
        theirs, ours = ResidualNetwork(ResnetConfig((1, 1, 1, 1), caffe=True)), ResidualNetwork(SMALL)
    strides = [[net.get_submodule(f"layer2.0.conv{i}").stride[0] for i in (1, 2, 3)] for net in (theirs, ours)]
    assert strides == [[2, 1, 1], [1, 2, 1]]
    assert (theirs.maxpool.padding, theirs.maxpool.ceil_mode) == (0, True)
    assert (ours.maxpool.padding, ours.maxpool.ceil_mode) == (1, False)


@each("caffe", [True, False])
def test_a_picture_of_256_has_64_cells(caffe: bool) -> None:
    with torch.device("meta"):
        assert ResidualNetwork(ResnetConfig((1, 1, 1, 1), caffe=caffe))(torch.zeros(1, 3, 256, 256)).shape == (
            1,
            2048,
            8,
            8,
        )
        assert ResidualNetwork(ResnetConfig((1, 1, 1, 1), caffe=caffe))(torch.zeros(1, 3, 512, 512)).shape == (
            1,
            2048,
            16,
            16,
        )


def test_cells_are_rows_of_the_map_and_batch_norms_never_train(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = small_backbone(monkeypatch).train()
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    pixels = torch.randn(2, 3, 64, 96)
    cells = backbone(pixels)
    assert torch.equal(cells.detach()[:, 4], backbone.resnet(pixels).detach()[:, :, 1, 1])
    assert not any(m.training for m in backbone.modules() if isinstance(m, nn.BatchNorm2d))
    assert all(torch.equal(v, before[k]) for k, v in backbone.state_dict().items())
    cells.sum().backward()
    assert all(p.grad is not None for p in backbone.parameters())


def test_a_file_with_base_and_top_and_one_with_torchvisions_names_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = small_backbone(monkeypatch).resnet.state_dict()
    torch.save({**state, "fc.weight": torch.zeros(2, 2)}, tmp_path / "flat.pth")
    torch.save(split_by_part(state), tmp_path / "parts.pth")
    for name in ("flat", "parts"):
        read = Backbone("resnet50", tmp_path / f"{name}.pth").resnet.state_dict()
        assert read.keys() == state.keys()
        assert all(torch.equal(read[k], state[k]) for k in state)
    broken = split_by_part(state)
    del broken["top"]["0.0.conv1.weight"]
    torch.save(broken, tmp_path / "broken.pth")
    with pytest.raises(InputError, match=r"missing \['layer4.0.conv1.weight'\] \(1\)"):
        Backbone("resnet50", tmp_path / "broken.pth")
    torch.save({"base": 3, "top": {}}, tmp_path / "odd.pth")
    with pytest.raises(InputError, match="must hold a dict of tensors, or one each under base and top"):
        read_backbone(tmp_path / "odd.pth")


def test_both_sets_of_names_of_a_trained_file_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    tower = train(small_backbone(monkeypatch).resnet.state_dict())
    once, left = drop_duplicate_backbone(tower)
    assert "backbone.resnet.layer4.0.conv2.weight" in once
    assert "image_encoder.fc.weight" in once
    assert {"backbone.resnet.fc.weight", "backbone.top.0.0.conv2.weight", "backbone.base.1.bias"} <= set(left)
    assert once.keys() | set(left) == tower.keys()
    less = {k: v for k, v in tower.items() if k != "backbone.base.5.0.bn2.weight"}
    with pytest.raises(InputError, match=r"only backbone.resnet.layer2.0.bn2.weight is"):
        drop_duplicate_backbone(less)
    more = {**tower, "backbone.top.0.9.bn2.weight": torch.zeros(2)}
    with pytest.raises(InputError, match=r"only backbone.top.0.9.bn2.weight is"):
        drop_duplicate_backbone(more)
    other = {**tower, "backbone.base.0.weight": torch.zeros(64, 3, 7, 7)}
    with pytest.raises(InputError, match=r"backbone.resnet.conv1.weight must equal backbone.base.0.weight"):
        drop_duplicate_backbone(other)


@each("network, source, expected", [
    ("resnet101", "imagenet", "resnet101_caffe"),
    ("resnet50", "imagenet_res50", "resnet50_caffe"),
    ("resnet152", "imagenet_res152", "resnet152_caffe"),
    ("detector", "detector", "detector"),
    ("detector", "my_detector", "detector"),
    ("resnext101", "wsl_resnext101", "resnext101"),
    ("resnext101", "imagenet_resnext", "resnext101"),
])  # fmt: skip
def test_tensors_and_the_option_identify_the_backbone(network: str, source: str, expected: str) -> None:
    with torch.device("meta"):
        tower = {f"backbone.resnet.{k}": v for k, v in ResidualNetwork(RESNETS[network]).state_dict().items()}
    assert identify_backbone(tower, source) == expected


@each("network, source, message", [
    ("resnext101", "detector", "backbone_source of the file must be of its tensors' resnext101; got 'detector'"),
    ("resnet50", "imagenet", "must be of its tensors' resnet50; got 'imagenet'"),
    ("resnet101", "imagenet_res200", "must be detector, imagenet, .*, or hold wsl; got 'imagenet_res200'"),
])  # fmt: skip
def test_a_backbone_that_the_option_contradicts_is_refused(network: str, source: str, message: str) -> None:
    with torch.device("meta"):
        tower = {f"backbone.resnet.{k}": v for k, v in ResidualNetwork(RESNETS[network]).state_dict().items()}
    with pytest.raises(InputError, match=message):
        identify_backbone(tower, source)


def small_backbone(monkeypatch: pytest.MonkeyPatch) -> Backbone:
    monkeypatch.setattr("lossscope.encoders.layers.grid_backbone.RESNETS", {"resnet50": SMALL})
    torch.manual_seed(0)
    return Backbone("resnet50")


def split_by_part(state: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    parts = {"conv1": "base.0", "bn1": "base.1", "layer1": "base.4", "layer2": "base.5", "layer3": "base.6"}
    parts_by_name: dict[str, dict[str, Tensor]] = {"base": {}, "top": {}}
    for name, tensor in state.items():
        head, _, rest = name.partition(".")
        part, _, layer = parts.get(head, "top.0").partition(".")
        assert torchvision_name(f"{part}.{layer}.{rest}") == name
        parts_by_name[part][f"{layer}.{rest}"] = tensor
    return parts_by_name


def train(state: dict[str, Tensor]) -> dict[str, Tensor]:
    parts = {f"backbone.{p}.{k}": v for p, part in split_by_part(state).items() for k, v in part.items()}
    whole = {f"backbone.resnet.{k}": v for k, v in state.items()}
    head = {"backbone.resnet.fc.weight": torch.zeros(2, 2), "image_encoder.fc.weight": torch.zeros(2, 2)}
    return {**whole, **parts, **head}
