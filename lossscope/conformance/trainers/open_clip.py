"""ClipLoss and SigLipLoss of open_clip, at any layout over processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lossscope.core.distributed import process_group

from ..library_options import construct, keyword_arguments, load_class
from .base import LibraryTrainer, Step


class _Scaled(nn.Module):
    """The loss with a learnt scale and bias, as CLIP and SigLIP models have them."""

    def __init__(self, loss: Any, scale: float, bias: float | None) -> None:
        super().__init__()
        self.loss = loss
        self.logit_scale = nn.Parameter(torch.tensor(scale, dtype=torch.float64).log())
        self.logit_bias = None if bias is None else nn.Parameter(torch.tensor(bias, dtype=torch.float64))

    def forward(self, queries: Tensor, candidates: Tensor) -> Tensor:
        q, c = (nn.functional.normalize(x, dim=-1) for x in (queries, candidates))
        scale = self.logit_scale.exp().to(q.dtype)
        bias = () if self.logit_bias is None else (self.logit_bias.to(q.dtype),)
        value: Tensor = self.loss(q, c, scale, *bias)
        return value


@dataclass(frozen=True)
class OpenClip(LibraryTrainer):
    """A loss that is called as loss(image_features, text_features, logit_scale[, logit_bias]) on unit vectors.

    Source: open_clip 3.3.
    """

    loss: Literal["ClipLoss", "SigLipLoss"] = "ClipLoss"  # its class
    local_loss: bool = False  # of ClipLoss: each process the rows of its own
    gather_with_grad: bool = False  # of ClipLoss
    scale: float = 14.3  # logit_scale, at its usual start 1 / 0.07
    bias: float | None = None  # logit_bias; SigLipLoss: -10 unless it is given
    options: str = ""  # further arguments of the loss, as in "dist_impl=gather"

    def __post_init__(self) -> None:
        keyword_arguments(self.options)

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return the loss as a step; see Trainer.

        Raises:
            InputError: open_clip is not installed.
            SpecError: the loss does not take an option.
        """
        group = process_group()
        layout = {"local_loss": self.local_loss, "gather_with_grad": self.gather_with_grad}
        position = {"rank": group.rank, "world_size": group.size}
        given = keyword_arguments(self.options)
        loss = construct(load_class("open_clip.loss", self.loss, "open_clip_torch"), given, {**position, **layout})
        bias = -10.0 if self.bias is None and self.loss == "SigLipLoss" else self.bias
        return _Scaled(loss, self.scale, bias)
