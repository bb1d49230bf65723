"""What encoders take and give: items, their shapes, encoded batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .layers.state_dict import require_finite as require_finite
from .layers.state_dict import require_fit as require_fit

if TYPE_CHECKING:
    pass


Items = Tensor | Mapping[str, Tensor]


Shape = tuple[int, ...] | Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class EncodedBatch:
    """One side of a batch after encoding.

    global_: (n, d) one vector per item, or None. local: (n, L, d) regions or words, or None; mask: (n, L) bool of
    those present, first ones first. extra: further tensors with n rows.
    """

    global_: Tensor | None
    local: Tensor | None = None
    mask: Tensor | None = None
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def vectors(self) -> Tensor:
        """The global vectors. Raises ValueError for an encoder that scores pairs directly."""
        if self.global_ is None:
            raise ValueError("this encoder has no global embedding; its similarities come from score()")
        return self.global_

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Everything it holds by name, `extra.` before the names of extra."""
        named = {"global_": self.global_, "local": self.local, "mask": self.mask}
        return {k: v for k, v in named.items() if v is not None} | {f"extra.{k}": v for k, v in self.extra.items()}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> EncodedBatch:
        """The Side whose `tensors` these are."""
        extra = {k.removeprefix("extra."): v for k, v in tensors.items() if k.startswith("extra.")}
        return cls(tensors.get("global_"), tensors.get("local"), tensors.get("mask"), extra)

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    @property
    def lengths(self) -> Tensor:
        """(n,) how many of local are present. Raises ValueError without a mask."""
        if self.mask is None:
            raise ValueError("this side has no mask, so no lengths")
        return self.mask.sum(1)

    def rows(self, rows: Tensor | slice) -> EncodedBatch:
        """Some items."""
        return EncodedBatch.of({k: v[rows] for k, v in self.tensors.items()})


def on_device(items: Any, device: torch.device) -> Items:
    """Arrays that a data set took, one or several by name, as tensors on a device."""
    if isinstance(items, Mapping):
        return {name: torch.from_numpy(array).to(device) for name, array in items.items()}
    return torch.from_numpy(items).to(device)


@dataclass(frozen=True)
class ReleasedFile:
    """What an original file holds.

    towers: its state dicts in the file's order (one for most, [image, text(, similarity)] for the VSE family), without
    `module.` in front of the names; only that very prefix is dropped, and only where every name of a tower has it.
    options: its opt or config as plain values, {} when it has none. epoch, metrics: as far as it says.
    """

    path: Path
    towers: tuple[Mapping[str, Tensor], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedModel:
    """An original file as one of our encoders.

    encoder: the encoder's dataclass. weights: every tensor under our names. ignored: names left out on purpose.
    kept: the configuration that a checkpoint of it must hold, as EncoderSpec.kept. context: ids of the longest caption
    it takes (0: any).
    item_shape: of one image, as the model takes it. vocabulary_size: rows of its word embedding (0: its tokeniser's).
    objective: spec of what it was trained with, with the margin and temperature it says. notices: what to tell.
    """

    encoder: Any
    weights: Mapping[str, Tensor]
    item_shape: Any
    vocabulary_size: int
    objective: str
    ignored: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    context: int = 0
