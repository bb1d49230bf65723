"""A model in train mode, for its vectors alone: dropout drawn with a seed, batch norm of the batch, nothing changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class TrainMode:
    """Embed in train mode."""

    seed: int = 0  # of dropout, and of whatever else the model draws

    @contextlib.contextmanager
    def of(self, model: nn.Module) -> Iterator[None]:
        """Put a model in train mode; its buffers, modes and the random states are then what they were."""
        kept = {name: x.clone() for name, x in model.named_buffers()}
        modes = {name: module.training for name, module in model.named_modules()}
        device = next(model.parameters()).device
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.no_grad():
                torch.manual_seed(self.seed)
                model.train()
                yield
        finally:
            for name, module in model.named_modules():
                module.training = modes[name]
            for name, x in kept.items():
                model.get_buffer(name).copy_(x)


def starts_of(items: int, size: int, at_least: bool) -> list[tuple[int, int]]:
    """Return start and end of consecutive batches.

    Args:
        items: how many there are.
        size: of a batch.
        at_least: no batch is smaller, unless it is the only one: batch norm of one item is none.
    """
    if not at_least:
        return [(start, min(start + size, items)) for start in range(0, items, size)]
    number = max(items // size, 1)
    return [(items * index // number, items * (index + 1) // number) for index in range(number)]
