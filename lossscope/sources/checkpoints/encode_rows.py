"""Encode some items of a split anew, in batches as they are given, whatever a cache has of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lossscope.core.float32_products import float32_products
from lossscope.core.pair import Pair
from lossscope.core.types import Rows
from lossscope.encoders.types import on_device

if TYPE_CHECKING:
    from lossscope.encoders.base import Encoder

    from .captions import CaptionBatcher

EncodeRows = Callable[[Sequence[Rows]], Tensor]  # rows of each batch -> vectors (n, d) in their order, on the CPU


@dataclass(frozen=True, eq=False)
class ItemEncoder:
    """The model of a checkpoint, as it encodes items of both sides of a split."""

    load: Callable[[], tuple[Encoder, CaptionBatcher]]  # returns the model in eval mode, and the captions

    @property
    def sides(self) -> Pair[EncodeRows]:
        """What encodes rows of each side."""
        return Pair(self.first, self.second)

    @float32_products()
    @torch.inference_mode()
    def first(self, batches: Sequence[Rows]) -> Tensor:
        """Return the vectors of items of the first side."""
        model, captions = self.load()
        device, items = next(model.parameters()).device, captions.split.images
        parts = [model.encode_images(on_device(items.take(rows), device)).vectors.float().cpu() for rows in batches]
        return torch.cat(parts).clone()

    @float32_products()
    @torch.inference_mode()
    def second(self, batches: Sequence[Rows]) -> Tensor:
        """Return the vectors of items of the second side, padded to the longest of their batch."""
        model, captions = self.load()
        device = next(model.parameters()).device
        parts = [model.encode_texts(*captions.take(rows, device)).vectors.float().cpu() for rows in batches]
        return torch.cat(parts).clone()
