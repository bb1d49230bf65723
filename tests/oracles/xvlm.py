"""X-VLM, slowly: attention over the whole grid with a mask, one picture, one caption and one pair at a time."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import conv2d, gelu, layer_norm

State = Mapping[str, Tensor]
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)


def image(state: State, pixels: Tensor, depths: tuple[int, ...], window: int, patch: int) -> Tensor:
    """(3, s, s) pixels in 0..1 -> (1 + T, C), the mean first."""
    name = "vision_encoder"
    scaled = torch.stack([(pixels[c] - _MEAN[c]) / _DEVIATION[c] for c in range(3)])
    grid = conv2d(
        scaled[None], state[f"{name}.patch_embed.proj.weight"], state[f"{name}.patch_embed.proj.bias"], stride=patch
    )[0].permute(1, 2, 0)
    grid = _norm(state, f"{name}.patch_embed.norm", grid, 1e-5)
    for stage, depth in enumerate(depths):
        for block in range(depth):
            grid = _block(state, f"{name}.layers.{stage}.blocks.{block}", grid, window, block % 2 == 1)
        if stage < len(depths) - 1:
            four = torch.cat([grid[0::2, 0::2], grid[1::2, 0::2], grid[0::2, 1::2], grid[1::2, 1::2]], -1)
            down = f"{name}.layers.{stage}.downsample"
            grid = _norm(state, f"{down}.norm", four, 1e-5) @ state[f"{down}.reduction.weight"].T
    tokens = _norm(state, f"{name}.norm", grid, 1e-5).flatten(0, 1)
    return torch.cat([tokens.mean(0, keepdim=True), tokens])


def _block(state: State, name: str, grid: Tensor, window: int, shifted: bool) -> Tensor:
    x = _norm(state, f"{name}.norm1", grid, 1e-5)
    grid = grid + _windowed(state, f"{name}.attn", x, window, shifted)
    x = _norm(state, f"{name}.norm2", grid, 1e-5)
    return grid + _linear(state, f"{name}.mlp.fc2", gelu(_linear(state, f"{name}.mlp.fc1", x)))


def _windowed(state: State, name: str, grid: Tensor, window: int, shifted: bool) -> Tensor:
    """Every token attends to those of its window that it can reach without leaving the picture."""
    side, width = grid.shape[0], grid.shape[2]
    w = min(window, side)
    shift = w // 2 if shifted and side > window else 0
    tokens = grid.flatten(0, 1)
    q, k, v = _linear(state, f"{name}.qkv", tokens).chunk(3, 1)
    table = state[f"{name}.relative_position_bias_table"]
    heads = table.shape[1]
    result = []
    for h in range(heads):
        part = slice(h * width // heads, (h + 1) * width // heads)
        logits = q[:, part] @ k[:, part].T / (width // heads) ** 0.5
        for i in range(side * side):
            for j in range(side * side):
                (r, c), (s, d) = divmod(i, side), divmod(j, side)
                near = all(
                    ((a - shift) % side) // w == ((b - shift) % side) // w and (a < shift) == (b < shift)
                    for a, b in ((r, s), (c, d))
                )
                offset = (r - s + w - 1) * (2 * w - 1) + c - d + w - 1
                logits[i, j] = logits[i, j] + table[offset, h] if near else -torch.inf
        result.append(logits.softmax(1) @ v[:, part])
    return _linear(state, f"{name}.proj", torch.cat(result, 1)).view(grid.shape)


def text(state: State, ids: list[int], layers: int) -> Tensor:
    """Ids of one caption -> (L, d) after the first layers."""
    name = "text_encoder.embeddings"
    rows = [
        state[f"{name}.word_embeddings.weight"][word]
        + state[f"{name}.position_embeddings.weight"][position]
        + state[f"{name}.token_type_embeddings.weight"][0]
        for position, word in enumerate(ids)
    ]
    x = _norm(state, f"{name}.LayerNorm", torch.stack(rows), 1e-12)
    for layer in range(layers):
        x = _layer(state, f"text_encoder.encoder.layer.{layer}", x, None)
    return x


def match_logits(state: State, states: Tensor, tokens: Tensor, layers: range) -> Tensor:
    """(L, d) of a caption and (T, C) of a picture -> (2,) logits: no match, match."""
    for layer in layers:
        states = _layer(state, f"text_encoder.encoder.layer.{layer}", states, tokens)
    x = _linear(state, "itm_head.0", states[0])
    x = layer_norm(x, x.shape, state["itm_head.1.weight"], state["itm_head.1.bias"])
    return _linear(state, "itm_head.3", gelu(x))


def vectors(state: State, tokens: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors of one picture and one caption."""
    v, t = _linear(state, "vision_proj", tokens[0]), _linear(state, "text_proj", states[0])
    return v / v.norm(), t / t.norm()


def _layer(state: State, name: str, x: Tensor, tokens: Tensor | None) -> Tensor:
    x = _attended(state, f"{name}.attention", x, x)
    if tokens is not None:
        x = _attended(state, f"{name}.crossattention", x, tokens)
    inner = gelu(_linear(state, f"{name}.intermediate.dense", x))
    return _norm(state, f"{name}.output.LayerNorm", x + _linear(state, f"{name}.output.dense", inner), 1e-12)


def _attended(state: State, name: str, x: Tensor, context: Tensor) -> Tensor:
    q = _linear(state, f"{name}.self.query", x)
    k, v = (_linear(state, f"{name}.self.{kind}", context) for kind in ("key", "value"))
    heads = []
    for h in range(x.shape[1] // 64):
        part = slice(64 * h, 64 * h + 64)
        heads.append((q[:, part] @ k[:, part].T / 8).softmax(1) @ v[:, part])
    out = _linear(state, f"{name}.output.dense", torch.cat(heads, 1))
    return _norm(state, f"{name}.output.LayerNorm", x + out, 1e-12)


def contrast(S: Tensor, tau: float, match: Tensor) -> float:
    """Mean of both directions' cross-entropy, the target spread over all positives of a query."""
    total = 0.0
    for scores, targets in ((S, match), (S.T, match.T)):
        losses = []
        for row, positives in zip(scores / tau, targets, strict=True):
            shares = row.softmax(0)
            losses.append(-sum(float(shares[j].log()) for j in positives.nonzero().flatten()) / int(positives.sum()))
        total += sum(losses) / len(losses) / 2
    return total


def _linear(state: State, name: str, x: Tensor) -> Tensor:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def _norm(state: State, name: str, x: Tensor, eps: float) -> Tensor:
    return layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"], eps)
