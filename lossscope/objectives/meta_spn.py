"""Meta-SPN: a small network weights the positive and the hardest negative, learnt by a meta step in training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from lossscope.core.cached import cached_property
from lossscope.core.similarity import Mask
from lossscope.core.stop_gradient import stop_gradient
from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch

from ._formulas import hardest_negative, positive_of
from .base import LossObjective, Traits
from .counting.hardest import HardestNegativeRule


@dataclass(frozen=True)
class MetaSPN(LossObjective):
    """l_q = [margin + n − s₊ > 0] (ω₋ n − ω₊ s₊), (ω₊, ω₋) = 2 sigmoid(net(s₊, n)), n the hardest negative.

    The network is 2 → hidden, ReLU, → 2, with a last layer that starts at 0: an untrained one gives ω = 1, the gradient
    of triplet_sh. Raises InputError where the file `net` has no network of this size.
    W: −ω₊ on the positive, ω₋ on the hardest negative (the first one if several are equal), if violating; the weights ω
    are constants of the gradient.
    Counted: |W|.
    Training: sum i2t + sum t2i; the network is learnt in an outer step on validation batches, with Adam at learning
    rate meta_lr (lossscope/training/meta_step.py), and saved in checkpoints.
    Defaults: no code is public, so the size and the learning rate are ours.
    Source: Wei et al. 2021 (Meta Self-Paced Network) for the mechanism; the form of the weighted loss is ours.
    """

    margin: float = 0.2  # in similarity
    hidden: int = 16  # width of the network
    meta_lr: float = 0.001  # learning rate of the network
    seed: int = 0  # of its initial weights
    net: Path | None = None  # checkpoint or .safetensors file of a trained network
    traits: ClassVar[Traits] = Traits(needs_warmup=True)
    caveat: ClassVar[str] = "the size and the learning rate of meta_spn's network are ours: no code is published"

    def __post_init__(self) -> None:
        if not (self.margin >= 0 and self.hidden >= 1 and self.meta_lr > 0):
            got = f"{self.margin}, {self.hidden} and {self.meta_lr}"
            raise InputError(f"margin must be >= 0, hidden >= 1 and meta_lr > 0; got {got}")

    def network(self) -> nn.Module:
        """Return the network, the same one at every call."""
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
        """W, (q, c), with its graph to the network, for the meta step; all rows must be usable."""
        s_pos, (s_neg, column) = positive_of(S, mask), hardest_negative(S, mask)
        weight = self._weights(s_pos, s_neg) * (self.margin + s_neg - s_pos > 0)
        W = torch.zeros_like(S).scatter(1, column, weight[:, 1:])
        return W.scatter_add(1, mask.first_positive, -weight[:, :1])

    def _weights(self, s_pos: Tensor, s_neg: Tensor) -> Tensor:
        """(q, 2) ω₊, ω₋, in the precision of the similarities."""
        x = torch.cat([s_pos, s_neg], 1)
        net = {name: parameter.to(x) for name, parameter in self._net.named_parameters()}
        hidden = nn.functional.linear(x, net["0.weight"], net["0.bias"]).relu()
        return 2 * nn.functional.linear(hidden, net["1.weight"], net["1.bias"]).sigmoid()

    @cached_property
    def _net(self) -> nn.ModuleList:
        net = nn.ModuleList([nn.Linear(2, self.hidden), nn.Linear(self.hidden, 2)])
        generator = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            for parameter in net[0].parameters():
                parameter.copy_(torch.rand(parameter.shape, generator=generator) * 2 - 1)
            for parameter in net[1].parameters():
                parameter.zero_()
        if self.net is not None:
            weights = _read_network(self.net)
            try:
                if not all(weight.is_floating_point() and bool(weight.isfinite().all()) for weight in weights.values()):
                    raise TypeError("its numbers must be finite floats")
                net.load_state_dict(weights)
            except (RuntimeError, AttributeError, TypeError) as error:
                raise InputError(f"{self.net} must hold a net of hidden={self.hidden}; {error}") from error
        return net


def _read_network(path: Path) -> dict[str, Tensor]:
    """Read the network from a checkpoint trained with this objective, or from a file of its weights alone."""
    if path.suffix == ".safetensors":
        tensors = read_safetensors(path)
        network = {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith("objective_state.")}
        return network or tensors
    checkpoint = read_torch(path)
    state = checkpoint.get("objective_state") if isinstance(checkpoint, dict) else None
    if not isinstance(state, dict):
        raise InputError(f"{path} must be a checkpoint trained with meta_spn; it holds no net")
    return state
