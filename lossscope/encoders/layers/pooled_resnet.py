"""Residual networks pooled to one vector, and loading of files with torchvision's parameter names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.io.files import read_tensors

from ..base import require_fit
from .residual_network import RESNETS, ResidualNetwork
from .state_dict import add_batch_counters

DEPTHS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {name: RESNETS[name].depths for name in ("resnet18", "resnet50", "resnet101", "resnet152")}
)


class Resnet(ResidualNetwork):
    """(n, 3, H, W) normalised pixels -> (n, width) features averaged over the last map.

    Raises InputError that names the first parameter that is missing, left over, or of another shape.

    Args:
        depths: one of DEPTHS.
        weights: a file with torchvision's names; `module.` in front of names and `fc` are dropped.
    """

    def __init__(self, depths: tuple[int, ...], weights: Path | None = None) -> None:
        super().__init__(RESNETS[next(name for name, entry in DEPTHS.items() if entry == depths)])
        if weights is not None:
            load_torchvision(self, read_tensors(weights))

    def forward(self, pixels: Tensor) -> Tensor:
        return super().forward(pixels).mean((2, 3))

    def maps(self, pixels: Tensor) -> Tensor:
        """(n, 3, H, W) normalised pixels -> (n, width, h, w), before the average."""
        return super().forward(pixels)


def load_torchvision(net: nn.Module, weights: Mapping[str, Tensor], ignored: tuple[str, ...] = ("fc.",)) -> None:
    """Load a file's tensors into `net`; all must fit, but for names that start with one of `ignored`.

    `module.` in front of names is dropped. Raises InputError that names the first parameter that does not fit.
    """
    named = {key.removeprefix("module."): value for key, value in weights.items()}
    named = add_batch_counters({k: v for k, v in named.items() if not k.startswith(ignored)}, net.state_dict())
    require_fit(net.state_dict(), named, "a network of this depth")
    net.load_state_dict(named)


def require_weights(weights: Path | None, what: str, instead: str = "") -> None:
    """Raise InputError when a network that is not trained has no file of weights.

    On the meta device, where only names and shapes matter, it needs none.

    Args:
        weights: the file.
        what: the network, for the message.
        instead: another way to satisfy the check, for the message.
    """
    if weights is None and torch.get_default_device().type != "meta":
        raise InputError(
            f"weights must be a file for {what}; got none, which leaves it random: name its weights, "
            f"--encoder-option weights=FILE{instead}"
        )


def identify_resnet(names: Iterable[str]) -> str:
    """Return the key of DEPTHS whose blocks have these parameter names. Raises InputError when there is none."""
    names = list(names)
    blocks = {match[0] for name in names if (match := re.search(r"layer\d\.\d+\.", name))}
    depths = tuple(sum(block.startswith(f"layer{stage}.") for block in blocks) for stage in range(1, 5))
    has_third = any(".conv3." in name for name in names)
    for name, entry in DEPTHS.items():
        if entry == depths and RESNETS[name].basic != has_third:
            return name
    got = f"{depths} blocks of {3 if has_third else 2} convolutions"
    raise InputError(f"a residual network must be one of {', '.join(DEPTHS)}; got {got}")
