"""Names and shapes of tensors, as torch, BERT and the authors' code name them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lossscope.encoders.base import EncoderSpec
from lossscope.encoders.types import ItemShape

Shapes = dict[str, tuple[int, ...]]


def shapes_of(
    spec: EncoderSpec, item_shape: ItemShape, vocabulary_size: int, prefix: str = "", buffers: bool = False
) -> Shapes:
    """Return the shapes of an encoder's state dict, without allocating its memory.

    Args:
        spec: of the encoder.
        item_shape: of one item.
        vocabulary_size: ids.
        prefix: names that begin with it, without it.
        buffers: with those that are not stored.
    """
    with torch.device("meta"):
        encoder = spec.build(item_shape, vocabulary_size)
    state: Mapping[str, Tensor] = {**encoder.state_dict(), **(dict(encoder.named_buffers()) if buffers else {})}
    return {name.removeprefix(prefix): tuple(v.shape) for name, v in state.items() if name.startswith(prefix)}


def below(prefix: str, *parts: Shapes) -> Shapes:
    """Return parts below a prefix."""
    return {f"{prefix}.{name}": shape for part in parts for name, shape in part.items()}


def linear(name: str, out: int, width: int) -> Shapes:
    """Return the shapes of a linear map with a bias."""
    return {f"{name}.weight": (out, width), f"{name}.bias": (out,)}


def norm(name: str, width: int) -> Shapes:
    """Return the shapes of a layer norm."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def batch_norm(name: str, width: int) -> Shapes:
    """Return the shapes of a batch norm, with its running statistics."""
    statistics = {f"{name}.{part}": (width,) for part in ("running_mean", "running_var")}
    return {**norm(name, width), **statistics, f"{name}.num_batches_tracked": ()}


def gru(name: str, width: int, inputs: int, both_ways: bool = True) -> Shapes:
    """Return the shapes of a GRU of one layer."""
    parts: Shapes = {"weight_ih": (3 * width, inputs), "weight_hh": (3 * width, width)}
    parts |= {"bias_ih": (3 * width,), "bias_hh": (3 * width,)}
    ends = ("_l0", "_l0_reverse") if both_ways else ("_l0",)
    return {f"{name}.{part}{end}": shape for end in ends for part, shape in parts.items()}


def bert_tables(width: int, words: int, positions: int, types: int, norm_name: str = "LayerNorm") -> Shapes:
    """Return the shapes of the embeddings of a BERT; with 0 words there is no table of words."""
    tables = {"word": words, "position": positions, "token_type": types}
    found: Shapes = {f"embeddings.{kind}_embeddings.weight": (n, width) for kind, n in tables.items() if n}
    return found | norm(f"embeddings.{norm_name}", width)


def bert_layer(name: str, width: int, inner: int, norm_name: str = "LayerNorm", context: int = 0) -> Shapes:
    """Return the shapes of a layer of a BERT; `context` is the width that its cross-attention reads, 0 without one."""
    layer: Shapes = {}
    for kind, read in {"attention": width, **({"crossattention": context} if context else {})}.items():
        layer |= linear(f"{kind}.self.query", width, width) | linear(f"{kind}.output.dense", width, width)
        layer |= linear(f"{kind}.self.key", width, read) | linear(f"{kind}.self.value", width, read)
        layer |= norm(f"{kind}.output.{norm_name}", width)
    layer |= linear("intermediate.dense", inner, width) | linear("output.dense", width, inner)
    return below(name, layer, norm(f"output.{norm_name}", width))
