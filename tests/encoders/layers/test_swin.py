"""Swin: transformers' own numbers, shifted and halved, and the windows of a grid."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from lossscope.encoders.layers.swin import Swin, SwinPlan
from lossscope.encoders.layers.swin_windows import apart, grid_of, offsets, windows_of

THEIRS = {
    "patch_embed.proj": "embeddings.patch_embeddings.projection", "patch_embed.norm": "embeddings.norm",
    "norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj",
    "attn.relative_position_bias_table": "attention.relative_position_bias.relative_position_bias_table",
}  # fmt: skip


def of_transformers(name: str, state: Mapping[str, Tensor]) -> Tensor:
    """The tensor of transformers' model that has our name `name`."""
    there = "layernorm" + name[4:] if name.startswith("norm.") else name.replace("layers", "encoder.layers", 1)
    for ours, theirs in THEIRS.items():
        there = there.replace(ours, theirs)
    if ".attn.qkv." in name:
        return torch.cat([state[there.replace("attn.qkv", f"attention.{x}_proj")] for x in "qkv"])
    return state[there]


def test_the_tokens_are_those_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 32,
        "depths": [2, 3],
        "num_heads": [1, 2],
        "window_size": 4,
    }
    torch.manual_seed(0)
    theirs = transformers.SwinModel(transformers.SwinConfig(**sizes), add_pooling_layer=False).eval()
    for parameter in theirs.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    ours = Swin(SwinPlan(32, (2, 3), 4, 2), 32).eval()
    ours.load_state_dict({name: of_transformers(name, theirs.state_dict()) for name in ours.state_dict()})
    with torch.no_grad():
        pixels = torch.randn(2, 3, 32, 32)
        tokens, wanted = ours(pixels), theirs(pixels).last_hidden_state
    torch.testing.assert_close(tokens[:, 1:], wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(tokens[:, 0], wanted.mean(1), atol=1e-5, rtol=1e-5)


def test_windows_are_cut_row_by_row_and_put_back() -> None:
    grid = torch.arange(2 * 6 * 6 * 3).view(2, 6, 6, 3)
    windows = windows_of(grid, 3)
    assert windows.shape == (2, 4, 9, 3)
    assert torch.equal(windows[0, 1].view(3, 3, 3), grid[0, :3, 3:])
    assert torch.equal(windows[1, 2].view(3, 3, 3), grid[1, 3:, :3])
    assert torch.equal(grid_of(windows, 6), grid)


def test_an_offset_is_told_by_its_place_alone() -> None:
    rows = offsets(3)
    assert (int(rows.min()), int(rows.max())) == (0, 24)
    assert rows.diagonal().tolist() == [12] * 9
    assert int(rows[4, 0]) == int(rows[8, 4]) == 12 + 5 + 1


def test_only_the_last_windows_of_a_shift_hold_strangers() -> None:
    between = apart(8, 4, 2)
    assert between.shape == (4, 16, 16)
    assert not between[0].any()
    assert between[3].eq(0).sum(1).tolist() == [4] * 16
    assert between[1].view(4, 4, 4, 4)[0, 0].tolist() == [[0, 0, -100, -100]] * 4
