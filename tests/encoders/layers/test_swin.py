"""Swin: equal to transformers', shifted and merged, and the windows of a grid."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from lossscope.encoders.layers.swin import Swin, SwinConfig
from lossscope.encoders.layers.swin_windows import relative_positions, shift_mask, to_grid, to_windows

THEIRS = {
    "patch_embed.proj": "embeddings.patch_embeddings.projection", "patch_embed.norm": "embeddings.norm",
    "norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj",
    "attn.relative_position_bias_table": "attention.relative_position_bias.relative_position_bias_table",
}  # fmt: skip


def of_transformers(name: str, state: Mapping[str, Tensor]) -> Tensor:
    """Return the tensor of transformers' model that has our name `name`."""
    their_name = "layernorm" + name[4:] if name.startswith("norm.") else name.replace("layers", "encoder.layers", 1)
    for ours, theirs in THEIRS.items():
        their_name = their_name.replace(ours, theirs)
    if ".attn.qkv." in name:
        return torch.cat([state[their_name.replace("attn.qkv", f"attention.{x}_proj")] for x in "qkv"])
    return state[their_name]


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
    ours = Swin(SwinConfig(32, (2, 3), 4, 2), 32).eval()
    ours.load_state_dict({name: of_transformers(name, theirs.state_dict()) for name in ours.state_dict()})
    with torch.no_grad():
        pixels = torch.randn(2, 3, 32, 32)
        tokens, expected = ours(pixels), theirs(pixels).last_hidden_state
    torch.testing.assert_close(tokens[:, 1:], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(tokens[:, 0], expected.mean(1), atol=1e-5, rtol=1e-5)


def test_windows_are_cut_row_by_row_and_put_back() -> None:
    grid = torch.arange(2 * 6 * 6 * 3).view(2, 6, 6, 3)
    windows = to_windows(grid, 3)
    assert windows.shape == (2, 4, 9, 3)
    assert torch.equal(windows[0, 1].view(3, 3, 3), grid[0, :3, 3:])
    assert torch.equal(windows[1, 2].view(3, 3, 3), grid[1, 3:, :3])
    assert torch.equal(to_grid(windows, 6), grid)


def test_relative_positions_depend_on_the_offset_alone() -> None:
    rows = relative_positions(3)
    assert (int(rows.min()), int(rows.max())) == (0, 24)
    assert rows.diagonal().tolist() == [12] * 9
    assert int(rows[4, 0]) == int(rows[8, 4]) == 12 + 5 + 1


def test_only_the_last_windows_of_a_shift_are_masked() -> None:
    between = shift_mask(8, 4, 2)
    assert between.shape == (4, 16, 16)
    assert not between[0].any()
    assert between[3].eq(0).sum(1).tolist() == [4] * 16
    assert between[1].view(4, 4, 4, 4)[0, 0].tolist() == [[0, 0, -100, -100]] * 4
