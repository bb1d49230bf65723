"""Meta-SPN: a small network weighs the positive and the hardest negative, learnt by a meta step while training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from lossscope.core.similarity import Mask
from lossscope.core.stop_gradient import stop_gradient
from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch

from ._formulas import hardest_negative, positive_of
from .base import Loss
from .counting.hardest import HardestNegativeRule


@dataclass(frozen=True)
class MetaSPN(Loss):
    """l_q = [margin + n − s₊ > 0] (ω₋ n − ω₊ s₊), (ω₊, ω₋) = 2 sigmoid(net(s₊, n)), n the hardest negative.

    net: 2 → hidden, ReLU, → 2, with the last layer at 0, so that a fresh one gives ω = 1, the gradient of triplet_sh.
    As an option it is a file to take it from, a checkpoint or .safetensors. Raises InputError where that does not fit.
    W: −ω₊ on the positive, ω₋ on the hardest negative (of equals the first), if violating: the weights are constants
    of the gradient.
    Counted: |W|.
    Training: sum i2t + sum t2i; it learns the net in an outer step on validation batches (metastep.py) with Adam at
    meta_lr; its checkpoints hold it.
    Defaults: no code is public, so the sizes and the rates are ours.
    Source: Wei et al. 2021 (Meta Self-Paced Network) for the mechanism; the form of the weighted loss is ours.
    """

    margin: float = 0.2
    hidden: int = 16
    meta_lr: float = 0.001
    seed: int = 0
    net: Path | None = None
    needs_warmup: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.margin >= 0 and self.hidden >= 1 and self.meta_lr > 0):
            got = f"{self.margin}, {self.hidden} and {self.meta_lr}"
            raise InputError(f"margin must be >= 0, hidden >= 1 and meta_lr > 0; got {got}")

    def network(self) -> nn.Module:
        """The net, one and the same for this object."""
        return self._net

    @property
    def counting_rule(self) -> HardestNegativeRule:
        return HardestNegativeRule(self)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        s_pos, (s_neg, _) = positive_of(S, mask), hardest_negative(S, mask)
        weight = stop_gradient(self._weights(s_pos, s_neg))
        violates = self.margin + s_neg - s_pos > 0
        return ((weight[:, 1:] * s_neg - weight[:, :1] * s_pos) * violates).squeeze(1)

    def differentiable_weights(self, S: Tensor, mask: Mask) -> Tensor:
        """W, (q, c), with its graph to the net: what the meta step needs. All rows must be usable."""
        s_pos, (s_neg, column) = positive_of(S, mask), hardest_negative(S, mask)
        weight = self._weights(s_pos, s_neg) * (self.margin + s_neg - s_pos > 0)
        W = torch.zeros_like(S).scatter(1, column, weight[:, 1:])
        return W.scatter_add(1, mask.first_positive, -weight[:, :1])

    def _weights(self, s_pos: Tensor, s_neg: Tensor) -> Tensor:
        """(q, 2) ω₊, ω₋, in the precision of the similarities."""
        x = torch.cat([s_pos, s_neg], 1)
        net = {name: parameter.to(x) for name, parameter in self._net.named_parameters()}
        inside = nn.functional.linear(x, net["0.weight"], net["0.bias"]).relu()
        return 2 * nn.functional.linear(inside, net["1.weight"], net["1.bias"]).sigmoid()

    @cached_property
    def _net(self) -> nn.ModuleList:
        net = nn.ModuleList([nn.Linear(2, self.hidden), nn.Linear(self.hidden, 2)])
        dice = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            for parameter in net[0].parameters():
                parameter.copy_(torch.rand(parameter.shape, generator=dice) * 2 - 1)
            for parameter in net[1].parameters():
                parameter.zero_()
        if self.net is not None:
            try:
                net.load_state_dict(_stored(self.net))
            except (RuntimeError, AttributeError, TypeError) as error:
                raise InputError(f"{self.net} must hold a net of hidden={self.hidden}; {error}") from error
        return net


def _stored(path: Path) -> dict[str, Tensor]:
    """The net of a checkpoint trained with this objective, or of a file with nothing else."""
    if path.suffix == ".safetensors":
        found = read_safetensors(path)
        inside = {k.partition(".")[2]: v for k, v in found.items() if k.startswith("objective_state.")}
        return inside or found
    checkpoint = read_torch(path)
    state = checkpoint.get("objective_state") if isinstance(checkpoint, dict) else None
    if not isinstance(state, dict):
        raise InputError(f"{path} must be a checkpoint trained with meta_spn; it holds no net")
    return state
