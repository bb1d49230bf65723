"""Vision transformers in plain torch with timm's parameter names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from lossscope.errors import InputError
from lossscope.io.files import read_tensors

from .pooled_resnet import load_torchvision


@dataclass(frozen=True)
class VitConfig:
    """Sizes of a Vit; patches are 16 x 16 pixels, MLPs four times as wide."""

    width: int  # of the tokens
    depth: int  # number of blocks
    heads: int  # of a block


VITS: Mapping[str, VitConfig] = MappingProxyType(
    {"vit-small": VitConfig(384, 12, 6), "vit-base": VitConfig(768, 12, 12)}
)
PATCH = 16


class Vit(nn.Module):
    """(n, 3, H, W) normalised pixels of one size -> (n, width) the class token after the last norm.

    Names: cls_token, pos_embed, patch_embed.proj, blocks.{i}.{norm1, attn.qkv, attn.proj, norm2, mlp.fc1, mlp.fc2},
    norm. Raises InputError when the size is no multiple of 16.
    Source: Dosovitskiy et al. 2021; DeiT's small size, Touvron et al. 2021.

    Args:
        config: its sizes.
        size: height and width of the pictures.
        weights: a file with these names; `head.` is dropped.
    """

    def __init__(self, config: VitConfig, size: tuple[int, ...], weights: Path | None = None) -> None:
        super().__init__()
        if any(side % PATCH for side in size):
            raise InputError(f"vision transformers must be given sides that are multiples of {PATCH}; got {size}")
        self.width, width = config.width, config.width
        patches = (size[0] // PATCH) * (size[1] // PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + patches, width))
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, width, PATCH, PATCH)
        self.blocks = nn.ModuleList(_Block(width, config.heads) for _ in range(config.depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self._initialise()
        if weights is not None:
            load_torchvision(self, read_tensors(weights), ("head.",))

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.cls_token, std=0.02)

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.patch_embed.get_submodule("proj")(pixels).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(pixels), -1, -1), patches], 1) + self.pos_embed
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens[:, 0])  # type: ignore[no-any-return]


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = _Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = _Mlp(width)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attn(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))  # type: ignore[no-any-return]


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        n, length, width = tokens.shape
        q_k_v = self.qkv(tokens).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(*q_k_v.unbind(0))
        return self.proj(attended.transpose(1, 2).reshape(n, length, width))  # type: ignore[no-any-return]


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.fc2(nn.functional.gelu(self.fc1(tokens)))  # type: ignore[no-any-return]
