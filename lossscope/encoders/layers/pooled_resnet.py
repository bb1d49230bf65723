"""Residual networks pooled to one vector, and how files with torchvision's parameter names are read into them."""

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
from .residual_network import PLANS, GridNet

DEPTHS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {name: PLANS[name].depths for name in ("resnet18", "resnet50", "resnet101", "resnet152")}
)


class Resnet(GridNet):
    """(n, 3, H, W) normalised pixels -> (n, width) features averaged over the last map.

    depths: one of DEPTHS. weights: a file with torchvision's names; `module.` in front and `fc` are dropped.
    Raises InputError naming the first parameter that is missing, left over, or of another shape.
    """

    def __init__(self, depths: tuple[int, ...], weights: Path | None = None) -> None:
        super().__init__(PLANS[next(name for name, known in DEPTHS.items() if known == depths)])
        if weights is not None:
            load_torchvision(self, read_tensors(weights))

    def forward(self, pixels: Tensor) -> Tensor:
        return super().forward(pixels).mean((2, 3))

    def maps(self, pixels: Tensor) -> Tensor:
        """(n, 3, H, W) normalised pixels -> (n, width, h, w), before the average."""
        return super().forward(pixels)


def load_torchvision(net: nn.Module, found: Mapping[str, Tensor], ignored: tuple[str, ...] = ("fc.",)) -> None:
    """Put a file's tensors into `net`, strictly, but for names that start with one of `ignored`.

    `module.` in front of names is dropped. Raises InputError naming the first parameter that does not fit.
    """
    named = {key.removeprefix("module."): value for key, value in found.items()}
    named = with_counters({k: v for k, v in named.items() if not k.startswith(ignored)}, net.state_dict())
    require_fit(net.state_dict(), named, "a network of this depth")
    net.load_state_dict(named)


def require_trained(weights: Path | None, what: str, instead: str = "") -> None:
    """Raise InputError where a network that stays as it begins has no file of weights; instead: what else would do.

    On the meta device, where only names and shapes are asked for, it needs none.
    """
    if weights is None and torch.get_default_device().type != "meta":
        raise InputError(
            f"weights must be a file for {what}; got none, which leaves it random: name its weights, "
            f"--encoder-option weights=FILE{instead}"
        )


def network_of(names: Iterable[str]) -> str:
    """Which of DEPTHS has blocks of these parameter names. Raises InputError when none has."""
    names = list(names)
    found = {match[0] for name in names if (match := re.search(r"layer\d\.\d+\.", name))}
    depths = tuple(sum(block.startswith(f"layer{stage}.") for block in found) for stage in range(1, 5))
    third = any(".conv3." in name for name in names)
    for name, known in DEPTHS.items():
        if known == depths and PLANS[name].basic != third:
            return name
    got = f"{depths} blocks of {3 if third else 2} convolutions"
    raise InputError(f"a residual network must be one of {', '.join(DEPTHS)}; got {got}")


def with_counters(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`found` and, where files of before torch 0.4.1 have none, the batch counters of batch norms, as zero."""
    absent = {k: v.new_zeros((), device="cpu") for k, v in wanted.items() if k.endswith("num_batches_tracked")}
    return {**{k: v for k, v in absent.items() if k not in found}, **found}
