"""Do backbones of weight files and transformers folders extract the hidden states of their models?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.datasets.features.base import Backbone
from lossscope.datasets.features.resnet import ResnetMap
from lossscope.datasets.features.transformers import TransformersFolder
from lossscope.errors import InputError
from lossscope.io.json_files import read_json
from lossscope.registry import build
from tests.each import each
from tests.rewriting import STAYS, rewrite

transformers = pytest.importorskip("transformers")
PIXELS = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
MEAN, DEVIATION = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]


@pytest.fixture
def vit(tmp_path: Path) -> Path:
    return write_vit(tmp_path)


def write_vit(path: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32, patch_size=16
    )
    transformers.ViTModel(config).save_pretrained(path / "vit")
    normalisation = {"image_mean": MEAN, "image_std": DEVIATION}
    (path / "vit" / "preprocessor_config.json").write_text(json.dumps(normalisation))
    return path / "vit"


def test_tokens_of_a_vit_are_its_last_hidden_states(vit: Path) -> None:
    backbone = build("features", f"transformers:path={vit},drop=1")
    assert isinstance(backbone, Backbone)
    rows = backbone.open("cpu")(PIXELS)
    assert (rows.shape, rows.dtype) == ((2, 4, 8), np.float32)
    scaled = (PIXELS / 255 - np.array(MEAN)[:, None, None]) / np.array(DEVIATION)[:, None, None]
    model = transformers.ViTModel.from_pretrained(vit).eval()
    with torch.no_grad():
        expected = model(torch.from_numpy(scaled).float()).last_hidden_state[:, 1:].numpy()
    assert np.abs(rows - expected).max() < 1e-5
    assert TransformersFolder(vit).open("cpu")(PIXELS).shape == (2, 5, 8)


def test_a_map_of_a_convolutional_model_is_rows_of_cells(tmp_path: Path) -> None:
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic")
    model = transformers.ResNetModel(config).eval()
    model.save_pretrained(tmp_path)
    rows = TransformersFolder(tmp_path, normalise="imagenet").open("cpu")(PIXELS)
    assert rows.shape == (2, 16, 8)


def test_of_a_model_with_two_towers_the_vision_tower_is_used(tmp_path: Path) -> None:
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    vision = {**small, "image_size": 32, "patch_size": 16}
    config = transformers.CLIPConfig(text_config={**small, "vocab_size": 9}, vision_config=vision)
    transformers.CLIPModel(config).save_pretrained(tmp_path)
    assert TransformersFolder(tmp_path, normalise="imagenet").open("cpu")(PIXELS).shape == (2, 5, 8)


def test_the_identity_depends_on_the_weights(vit: Path) -> None:
    before = TransformersFolder(vit).identity
    assert before == TransformersFolder(vit).identity
    weights = vit / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert TransformersFolder(vit).identity != before


def test_weights_that_are_rewritten_while_features_are_extracted_are_refused(vit: Path) -> None:
    """They are mapped into memory, and changed with the file."""
    extract = TransformersFolder(vit, normalise="imagenet").open("cpu")
    pixels = np.zeros((1, 3, *[read_json(vit / "config.json")["image_size"]] * 2), np.uint8)
    extract(pixels)
    rewrite(vit / "model.safetensors")
    with pytest.raises(InputError, match=STAYS.format(name=r"model\.safetensors", got="was written again")):
        extract(pixels)


@each("change, message", [
    ({"preprocessor_config.json": None}, "must have image_mean and image_std; got no such file"),
    ({"preprocessor_config.json": '{"image_mean": [1, 2], "image_std": [1, 1, 1]}'}, "must be three numbers"),
    ({"preprocessor_config.json": '{"image_mean": [0, 0, 0], "image_std": [0, 1, 1]}'}, "must be three numbers"),
    ({"preprocessor_config.json": '{"image_mean": [NaN, 0, 0], "image_std": [1, 1, 1]}'}, "must be three numbers"),
    ({"config.json": None}, "must be a folder with config.json"),
    ({"config.json": '{"model_type": "nothing"}'}, "must hold a model that transformers knows"),
    ({"model.safetensors": None}, "must hold a model that transformers knows"),
])  # fmt: skip
def test_folders_that_cannot_be_used_are_refused(change: dict[str, str | None], message: str, tmp_path: Path) -> None:
    vit = write_vit(tmp_path)
    for name, content in change.items():
        (vit / name).unlink() if content is None else (vit / name).write_text(content)
    with pytest.raises(InputError, match=message):
        TransformersFolder(vit).open("cpu")


def test_code_in_a_folder_is_refused_without_a_question(vit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = vit.parent / "ran"
    (vit / "own.py").write_text(f"open({str(mark)!r}, 'w')\n")
    config = json.loads((vit / "config.json").read_text()) | {"model_type": "of_its_own"}
    names = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    (vit / "config.json").write_text(json.dumps(config | {"auto_map": names}))

    def fail(*_: object) -> str:
        raise AssertionError("a question on the terminal")

    monkeypatch.setattr("builtins.input", fail)
    with pytest.raises(InputError, match="must hold a model that transformers knows; got ValueError"):
        TransformersFolder(vit).open("cpu")
    assert not mark.exists()


@each("name", ["hidden_size", "num_attention_heads", "num_hidden_layers", "hidden_act"], "value", [None, [], "x"])
def test_a_damaged_configuration_is_refused(name: str, value: object, tmp_path: Path) -> None:
    vit = write_vit(tmp_path)
    config = json.loads((vit / "config.json").read_text())
    (vit / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(InputError, match="must hold a model that transformers knows"):
        TransformersFolder(vit).open("cpu")


def test_a_folder_that_lacks_weights_is_refused(vit: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(vit / "model.safetensors")
    gone = next(name for name in weights if "query.weight" in name or "q_proj.weight" in name)
    save_file({k: v for k, v in weights.items() if k != gone}, vit / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="must hold every weight of its model; missing"):
        TransformersFolder(vit).open("cpu")


def test_pictures_and_options_that_do_not_fit_are_refused(vit: Path) -> None:
    with pytest.raises(InputError, match=r"pictures must be what the model in .* takes; got \(3, 64, 64\)"):
        TransformersFolder(vit).open("cpu")(np.zeros((1, 3, 64, 64), np.uint8))
    with pytest.raises(InputError, match="drop must be below 5 tokens; got 5"):
        TransformersFolder(vit, drop=5).open("cpu")(PIXELS)
    with pytest.raises(InputError, match="drop must be at least 0"):
        TransformersFolder(vit, drop=-1)


def torchvision_named(model: Any) -> dict[str, torch.Tensor]:
    """Return the weights of a network of basic blocks under torchvision's names."""
    renamed = {}
    for key, value in model.state_dict().items():
        new = key.replace("embedder.embedder.convolution", "conv1").replace("embedder.embedder.normalization", "bn1")
        parts = new.split(".")
        if parts[0] == "encoder":
            block = f"layer{int(parts[2]) + 1}.{parts[4]}"
            if parts[5] == "shortcut":
                new = f"{block}.downsample.{'0' if parts[6] == 'convolution' else '1'}.{parts[-1]}"
            else:
                new = f"{block}.{'conv' if parts[7] == 'convolution' else 'bn'}{int(parts[6]) + 1}.{parts[-1]}"
        renamed[new.replace("embedder.normalization", "bn1")] = value
    return renamed


def test_the_last_map_of_a_residual_network(tmp_path: Path) -> None:
    torch.manual_seed(1)
    config = transformers.ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic")
    model = transformers.ResNetModel(config).eval()
    torch.save(torchvision_named(model), tmp_path / "w.pt")
    spec = f"resnet:weights={tmp_path}/w.pt,net=resnet18"
    pixels = np.random.default_rng(0).integers(0, 256, (1, 3, 64, 64), dtype=np.uint8)
    rows = build("features", spec).open("cpu")(pixels)
    assert rows.shape == (1, 4, 512)
    pooled = build("features", f"{spec},pooled=true").open("cpu")(pixels)
    assert np.abs(rows.mean(1) - pooled).max() < 1e-5
    mean, deviation = (np.array(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():
        expected = model(torch.from_numpy((pixels / 255 - mean) / deviation).float()).last_hidden_state
    assert np.abs(rows - expected.flatten(2).transpose(1, 2).numpy()).max() < 1e-4


def test_weights_that_are_missing_or_of_another_depth_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"w\.pt must exist"):
        _ = ResnetMap(tmp_path / "w.pt").identity
    torch.save({"conv1.weight": torch.zeros(64, 3, 7, 7)}, tmp_path / "w.pt")
    with pytest.raises(InputError, match="weights must be those of a network of this depth"):
        ResnetMap(tmp_path / "w.pt", "resnet18").open("cpu")
