"""SGRAF, one caption at a time on its true length, dropout off; `state` has the names of the original's third tower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

State = Mapping[str, Tensor]


def linear(state: State, name: str, x: Tensor) -> Tensor:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def unit(x: Tensor) -> Tensor:
    return x / (x.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8)


def norm(state: State, name: str, x: Tensor, training: bool) -> Tensor:
    """torch's batch norm over axis 1; in training its running statistics in `state` change."""
    parts = (state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
    return functional.batch_norm(x, *parts, training=training, momentum=0.1, eps=1e-5)


def whole_images(state: State, images: Tensor, training: bool) -> Tensor:
    """(n, R, D) -> (n, D)."""
    near = norm(state, "v_global_w.embedding_local.1", linear(state, "v_global_w.embedding_local.0", images), training)
    mean = linear(state, "v_global_w.embedding_global.0", images.mean(1))
    far = norm(state, "v_global_w.embedding_global.1", mean, training)
    weights = linear(state, "v_global_w.embedding_common.0", near.tanh() * far.tanh()[:, None]).softmax(1)
    return unit((weights * images).sum(1))


def whole_caption(state: State, words: Tensor) -> Tensor:
    """(W, D) -> (D,)."""
    near = linear(state, "t_global_w.embedding_local.0", words).tanh()
    far = linear(state, "t_global_w.embedding_global.0", words.mean(0)).tanh()
    weights = linear(state, "t_global_w.embedding_common.0", near * far).softmax(0)
    return unit((weights * words).sum(0))


def attended(words: Tensor, image: Tensor, sharpness: float) -> Tensor:
    """(W, D): the unit vector of the image that each word attends to."""
    s = words @ image.T
    s = torch.where(s > 0, s, 0.1 * s)
    s = s / (s.pow(2).sum(0, keepdim=True).sqrt() + 1e-8)
    return unit((sharpness * s).softmax(1) @ image)


def scores(
    state: State, images: Tensor, captions: Sequence[Tensor], sharpness: float = 9.0, training: bool = False
) -> Tensor:
    """S (n, m) from unit vectors: images (n, R, D), each caption (W, D)."""
    pictures = whole_images(state, images, training)
    columns = []
    for words in captions:
        caption = whole_caption(state, words)
        nodes = torch.stack([
            torch.cat([
                unit(linear(state, "sim_tranglo_w", (picture - caption) ** 2))[None],
                unit(linear(state, "sim_tranloc_w", (attended(words, image, sharpness) - words) ** 2)),
            ])
            for picture, image in zip(pictures, images, strict=True)
        ])  # fmt: skip
        result = filtered(state, nodes, training) if "SAF_module.bn.weight" in state else reasoned(state, nodes)
        columns.append(linear(state, "sim_eval_w", result)[:, 0].sigmoid())
    return torch.stack(columns, 1)


def reasoned(state: State, nodes: Tensor) -> Tensor:
    """(n, N, d) -> (n, d): every step with all its maps, then the first node."""
    step = 0
    while f"SGR_module.{step}.graph_query_w.weight" in state:
        query = linear(state, f"SGR_module.{step}.graph_query_w", nodes)
        key = linear(state, f"SGR_module.{step}.graph_key_w", nodes)
        edges = (query @ key.transpose(1, 2)).softmax(-1)
        nodes = linear(state, f"SGR_module.{step}.sim_graph_w", edges @ nodes).relu()
        step += 1
    return nodes[:, 0]


def filtered(state: State, nodes: Tensor, training: bool) -> Tensor:
    """(n, N, d) -> (n, d) by gates whose batch norm is over the images and nodes of one caption."""
    x = linear(state, "SAF_module.attn_sim_w", nodes).transpose(1, 2)
    gates = norm(state, "SAF_module.bn", x, training).sigmoid()
    gates = gates / (gates.abs().sum(2, keepdim=True) + 1e-8)
    return unit((gates @ nodes)[:, 0])
