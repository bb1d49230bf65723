"""Swin: a vision transformer that attends inside windows, shifted in every other block; the original's names."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from lossscope.errors import InputError

from .swin_windows import relative_positions, shift_mask, to_grid, to_windows

HEAD_WIDTH = 32  # width of an attention head


@dataclass(frozen=True)
class SwinConfig:
    """Sizes of a Swin."""

    width: int = 128  # of the first stage, doubled in each further one
    depths: tuple[int, ...] = (2, 2, 18, 2)  # blocks of each stage; every second one shifts its windows
    window: int = 12  # tokens of a window's side; a stage no larger than that is one window
    patch: int = 4  # pixels of a token's side
    drop_path: float = 0.1  # share of the last block's residual branches dropped in training, growing linearly from 0
    init: float = 0.02  # standard deviation of new linear maps and bias tables, normal

    @property
    def out(self) -> int:
        """Width of the output tokens."""
        return self.width << (len(self.depths) - 1)

    def sides(self, size: int) -> tuple[int, ...]:
        """Return the tokens of a side in each stage, for pictures of `size` pixels.

        Raises InputError unless patches fill the picture, windows fill every stage and sides can be halved.
        """
        if size < 1 or size % self.patch:
            raise InputError(f"patch must divide the pictures' side, {size}; got {self.patch}")
        sides, side = [], size // self.patch
        for stage in range(len(self.depths)):
            if side % min(self.window, side):
                raise InputError(f"window must divide the {side} tokens of a side in stage {stage}; got {self.window}")
            sides.append(side)
            if stage < len(self.depths) - 1 and side % 2:
                raise InputError(
                    f"tokens of a side must be even before stage {stage + 1}; got {side}. Use fewer depths"
                )
            side //= 2
        return tuple(sides)


class Swin(nn.Module):
    """(n, 3, s, s) normalised pixels -> (n, 1 + T, C): the mean token, then the T tokens of the last stage.

    Names: patch_embed.{proj, norm}, layers.{i}.blocks.{j}.{norm1, attn.{qkv, proj, relative_position_bias_table},
    norm2, mlp.{fc1, fc2}}, layers.{i}.downsample.{norm, reduction}, norm. The buffers relative_position_index and
    attn_mask follow from the sizes and are not in the state dict. Source: Liu et al. 2021; X-VLM for the mean token.
    """

    def __init__(self, config: SwinConfig, size: int) -> None:
        super().__init__()
        sides = config.sides(size)
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, config.width, config.patch, config.patch)
        self.patch_embed.norm = nn.LayerNorm(config.width)
        drops = torch.linspace(0, config.drop_path, sum(config.depths), device="cpu").tolist()
        self.layers = nn.ModuleList()
        for stage, (side, depth) in enumerate(zip(sides, config.depths, strict=True)):
            width, stage_drops, drops = config.width * 2**stage, drops[:depth], drops[depth:]
            self.layers.append(_Stage(width, side, config.window, stage_drops, stage < len(sides) - 1))
        self.norm = nn.LayerNorm(config.out)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=config.init)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            if isinstance(module, _Attention):
                nn.init.trunc_normal_(module.relative_position_bias_table, std=config.init)

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.patch_embed.get_submodule("proj")(pixels).flatten(2).transpose(1, 2)
        tokens = self.patch_embed.get_submodule("norm")(patches)
        for stage in self.layers:
            tokens = stage(tokens)
        tokens = self.norm(tokens)
        return torch.cat([tokens.mean(1, keepdim=True), tokens], 1)


class _Stage(nn.Module):
    def __init__(self, width: int, side: int, window: int, drops: list[float], halved: bool) -> None:
        super().__init__()
        blocks = (_Block(width, side, window, index % 2 == 1, drop) for index, drop in enumerate(drops))
        self.blocks = nn.Sequential(*blocks)
        self.downsample = _PatchMerging(width, side) if halved else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.downsample(self.blocks(tokens))  # type: ignore[no-any-return]


class _PatchMerging(nn.Module):
    """(n, s s, C) -> (n, s s / 4, 2 C): four neighbours concatenated, column after column, normalised and reduced."""

    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = nn.LayerNorm(4 * width)

    def forward(self, tokens: Tensor) -> Tensor:
        n, length, width = tokens.shape
        grid = tokens.reshape(n, self.side // 2, 2, self.side // 2, 2, width)
        neighbours = grid.permute(0, 1, 3, 4, 2, 5).reshape(n, length // 4, 4 * width)
        return self.reduction(self.norm(neighbours))  # type: ignore[no-any-return]


class _Block(nn.Module):
    attn_mask: Tensor

    def __init__(self, width: int, side: int, window: int, shifted: bool, drop: float) -> None:
        super().__init__()
        self.side, self.window, self.drop = side, min(window, side), drop
        self.shift = self.window // 2 if shifted and side > window else 0
        self.norm1 = nn.LayerNorm(width)
        self.attn = _Attention(width, self.window)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = _Mlp(width)
        if self.shift:
            self.register_buffer("attn_mask", shift_mask(side, self.window, self.shift), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self._drop_path(self._attend(self.norm1(tokens)))
        return tokens + self._drop_path(self.mlp(self.norm2(tokens)))

    def _attend(self, tokens: Tensor) -> Tensor:
        grid = tokens.reshape(len(tokens), self.side, self.side, -1)
        if not self.shift:
            return to_grid(self.attn(to_windows(grid, self.window)), self.side).flatten(1, 2)
        shift, shift_back = (-self.shift, -self.shift), (self.shift, self.shift)
        attended = self.attn(to_windows(grid.roll(shift, (1, 2)), self.window), self.attn_mask)
        return to_grid(attended, self.side).roll(shift_back, (1, 2)).flatten(1, 2)

    def _drop_path(self, branch: Tensor) -> Tensor:
        """Return the branch, set to 0 for a picture with probability `drop`, else scaled to keep its mean."""
        if not self.training or not self.drop:
            return branch
        kept = torch.rand(len(branch), 1, 1, device=branch.device) >= self.drop
        return branch * (kept / (1 - self.drop)).to(branch.dtype)


class _Attention(nn.Module):
    """softmax(q k' / √32 + b) v inside each window; b: a learnt number for each head and offset of two tokens."""

    relative_position_index: Tensor

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, self.heads))
        self.register_buffer("relative_position_index", relative_positions(window), persistent=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, windows: Tensor, between: Tensor | None = None) -> Tensor:
        """(n, count, L, C) -> the same; between: (count, L, L), added to the attention between tokens."""
        n, count, length, width = windows.shape
        q_k_v = self.qkv(windows).reshape(n * count, length, 3, self.heads, HEAD_WIDTH).permute(2, 0, 3, 1, 4)
        bias = self.relative_position_bias_table[self.relative_position_index].permute(2, 0, 1)[None]
        if between is not None:
            bias = bias + between[:, None]
        bias = bias.expand(n, count, -1, -1, -1).flatten(0, 1)
        attended = scaled_dot_product_attention(q_k_v[0], q_k_v[1], q_k_v[2], bias)
        return self.proj(attended.transpose(1, 2).reshape(n, count, length, width))  # type: ignore[no-any-return]


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.fc2(nn.functional.gelu(self.fc1(tokens)))  # type: ignore[no-any-return]
