"""Read the weights of a model: of one checkpoint, or of the first and last checkpoint of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from lossscope.io.run_folder import list_checkpoints
from lossscope.sources.checkpoints.checkpoint import Checkpoint

from .patient import Patient
from .trained_model import TrainedModel


@dataclass(frozen=True)
class Parameters:
    """Weights by name."""

    path: Path  # of the file with the last weights
    last: Mapping[str, Tensor]
    first: Mapping[str, Tensor] | None = None  # of an earlier epoch, where there is a checkpoint
    epochs: tuple[int, int] = (0, 0)  # of both
    needs: ClassVar[tuple[type, ...]] = (TrainedModel,)

    @classmethod
    def of(cls, patient: Patient, model: TrainedModel) -> Parameters:
        """Take the weights of a checkpoint, and in a run those of its first epoch, too."""
        weights, checkpoints = model.checkpoint.weights, list_checkpoints(model.path)
        if len(checkpoints) < 2 or checkpoints[-1][1] != model.file:  # a checkpoint alone, or a run of one epoch
            return cls(model.file, weights)
        (first, before), *_, (last, _) = checkpoints
        return cls(model.file, weights, Checkpoint.load(before).weights, (first, last))

    @cached_property
    def not_finite(self) -> list[str]:
        """Names of tensors with NaN or infinity."""
        return [name for name, x in self.last.items() if x.is_floating_point() and not bool(x.isfinite().all())]

    @cached_property
    def unchanged(self) -> float | None:
        """Share of the learnt numbers that are bit-identical in both checkpoints; None without an earlier checkpoint.

        Buffers that training does not learn, such as running means, are left out by their names.
        """
        if self.first is None:
            return None
        same = total = 0
        for name, now in self.last.items():
            before = self.first.get(name)
            if before is None or before.shape != now.shape or not now.is_floating_point() or _is_buffer(name):
                continue
            total += now.numel()
            same += int((before == now).sum())
        return same / total if total else None


def _is_buffer(name: str) -> bool:
    return name.rpartition(".")[2] in ("running_mean", "running_var", "num_batches_tracked", "position_ids")
