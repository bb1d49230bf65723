"""Vision transformers and VGG-19: the names in their files, and the numbers of an independent implementation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from lossscope.encoders.layers.vgg import Vgg19, adaptive_average
from lossscope.encoders.layers.vit import VITS, Vit, VitConfig
from lossscope.encoders.vsepp import VSEPP
from lossscope.errors import InputError
from tests.each import each

TINY = VitConfig(width=32, depth=2, heads=4)


def test_names_and_shapes_are_timms() -> None:
    with torch.device("meta"):
        shapes = {k: tuple(v.shape) for k, v in Vit(VITS["vit-base"], (224, 224)).state_dict().items()}
    block = {
        "norm1.weight": (768,), "norm1.bias": (768,), "attn.qkv.weight": (2304, 768), "attn.qkv.bias": (2304,),
        "attn.proj.weight": (768, 768), "attn.proj.bias": (768,), "norm2.weight": (768,), "norm2.bias": (768,),
        "mlp.fc1.weight": (3072, 768), "mlp.fc1.bias": (3072,), "mlp.fc2.weight": (768, 3072), "mlp.fc2.bias": (768,),
    }  # fmt: skip
    expected = {
        "cls_token": (1, 1, 768), "pos_embed": (1, 197, 768), "patch_embed.proj.weight": (768, 3, 16, 16),
        "patch_embed.proj.bias": (768,), "norm.weight": (768,), "norm.bias": (768,),
        **{f"blocks.{i}.{name}": shape for i in range(12) for name, shape in block.items()},
    }  # fmt: skip
    assert shapes == expected
    assert VITS["vit-small"] == VitConfig(384, 12, 6)


def test_the_class_token_is_that_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=(32, 48),
        layer_norm_eps=1e-6,
    )  # fmt: skip
    theirs = transformers.ViTModel(config, add_pooling_layer=False).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    ours = Vit(TINY, (32, 48)).eval()
    ours.load_state_dict(as_timm(theirs.state_dict()))
    pixels = torch.randn(3, 3, 32, 48)
    with torch.no_grad():
        expected, token = theirs(pixels).last_hidden_state[:, 0], ours(pixels)
    assert float(expected.std()) > 0.05
    assert torch.allclose(token, expected, atol=1e-4)


def as_timm(state: dict[str, Tensor]) -> dict[str, Tensor]:
    names = {"layernorm_before": "norm1", "layernorm_after": "norm2", "attention.o_proj": "attn.proj"}
    renamed = {"cls_token": state["embeddings.cls_token"], "pos_embed": state["embeddings.position_embeddings"]}
    for end in ("weight", "bias"):
        renamed[f"patch_embed.proj.{end}"] = state[f"embeddings.patch_embeddings.projection.{end}"]
        renamed[f"norm.{end}"] = state[f"layernorm.{end}"]
        for i in range(TINY.depth):
            q_k_v = [state[f"layers.{i}.attention.{part}_proj.{end}"] for part in "qkv"]
            renamed[f"blocks.{i}.attn.qkv.{end}"] = torch.cat(q_k_v)
            for theirs, ours in {**names, "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}.items():
                renamed[f"blocks.{i}.{ours}.{end}"] = state[f"layers.{i}.{theirs}.{end}"]
    return renamed


def test_weights_are_read_strictly(tmp_path: Path) -> None:
    state = Vit(TINY, (32, 32)).state_dict()
    torch.save({**state, "head.weight": torch.zeros(2, 2)}, tmp_path / "whole.pth")
    read = Vit(TINY, (32, 32), tmp_path / "whole.pth").state_dict()
    assert all(torch.equal(read[k], state[k]) for k in state)
    torch.save({k: v for k, v in state.items() if k != "blocks.1.attn.qkv.bias"}, tmp_path / "less.pth")
    with pytest.raises(InputError, match=r"missing \['blocks.1.attn.qkv.bias'\]"):
        Vit(TINY, (32, 32), tmp_path / "less.pth")
    with pytest.raises(InputError, match=r"pos_embed must be \(1, 10, 32\); got \(1, 5, 32\)"):
        Vit(TINY, (48, 48), tmp_path / "whole.pth")


def test_sides_must_be_multiples_of_a_patch() -> None:
    with pytest.raises(InputError, match=r"multiples of 16; got \(40, 32\)"):
        VSEPP(image="vit-small", finetune=True).build((3, 40, 32), 10)


def test_vgg_has_torchvisions_names_and_4096_features() -> None:
    with torch.device("meta"):
        net = Vgg19()
        assert net(torch.zeros(1, 3, 224, 224)).shape == (1, 4096)
    shapes = {k: tuple(v.shape) for k, v in net.state_dict().items()}
    layers = (0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34)
    assert {k for k in shapes if k.startswith("features.")} == {
        f"features.{layer}.{end}" for layer in layers for end in ("weight", "bias")
    }
    assert shapes["features.34.weight"] == (512, 512, 3, 3)
    assert {k: v for k, v in shapes.items() if k.startswith("classifier.")} == {
        "classifier.0.weight": (4096, 25088), "classifier.0.bias": (4096,),
        "classifier.3.weight": (4096, 4096), "classifier.3.bias": (4096,),
    }  # fmt: skip


@each("size", [(7, 7), (14, 21), (8, 8), (10, 3)])
def test_cells_of_vgg_are_those_of_adaptive_pooling_whose_gradient_is_not_deterministic(size: tuple[int, int]) -> None:
    maps = torch.randn(2, 3, *size, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    averaged, expected = adaptive_average(maps, 7), torch.nn.functional.adaptive_avg_pool2d(maps, 7)
    assert torch.allclose(averaged, expected, atol=1e-12)
    (gradient,), (torch_gradient,) = (torch.autograd.grad((x**2).sum(), maps) for x in (averaged, expected))
    assert torch.allclose(gradient, torch_gradient, atol=1e-12)
    with torch.device("meta"):
        assert not any(isinstance(part, torch.nn.AdaptiveAvgPool2d) for part in Vgg19().modules())
        assert Vgg19()(torch.zeros(1, 3, 256, 256)).shape == (1, 4096)
