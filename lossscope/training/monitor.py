"""Run probes on every n-th batch of a training; they never change the training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.similarity import Mask, both_masks, pair_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import OneBatch
from lossscope.engine.run_probes import in_unit
from lossscope.errors import InputError
from lossscope.io.decode import decode, read_toml
from lossscope.io.files import write_text
from lossscope.io.run_folder import Run
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.registry import build, spec_of

from .kernels import deterministic_kernels


@dataclass(frozen=True)
class ProbeSchedule:
    """Which probes run on which steps? It is no part of the recipe: a run has the same numbers with and without it.

    Raises InputError for no probes, or `every` below 1.
    """

    probes: tuple[str, ...]  # specs
    every: int = 100  # steps between probed batches; the first of an epoch is probed

    def __post_init__(self) -> None:
        if self.every < 1 or not self.probes:
            raise InputError(f"every must be at least 1, and probes must not be empty; got {self.every}, {self.probes}")

    def canonical(self) -> ProbeSchedule:
        """Return the schedule with all specs written in full; weights are in the unit of each objective's paper."""
        probes = (in_unit(build("probes", spec), "paper") for spec in self.probes)
        return ProbeSchedule(tuple(dict.fromkeys(map(spec_of, probes))), self.every)

    def write(self, path: Path) -> None:
        """Write the schedule as TOML, which a resumed run reads."""
        listed = json.dumps(list(self.probes), ensure_ascii=False)
        comment = "# What is computed of batches while this run trains, for probes.csv; a resumed run continues it."
        write_text(path, f"{comment}\nevery = {self.every}\nprobes = {listed}\n")

    @classmethod
    def read(cls, path: Path) -> ProbeSchedule:
        """Read TOML. Raises InputError for a file that is not TOML, or has other keys or types."""
        values = read_toml(path, "a TOML file with probes and every")
        if "every" not in values:  # the class has a default, which a file must not rely on
            raise InputError(f"{path} must have the keys probes and every; it lacks every")
        return decode(cls, values, str(path))

    def monitor(
        self, run: Run, objectives: Sequence[Objective], embeddings: bool, sides: Sides = IMAGE_TEXT
    ) -> BatchMonitor:
        """Build the monitor of a run.

        Args:
            run: with probes.csv.
            objectives: of all epochs.
            embeddings: whether the encoder has embeddings; models that score pairs have none.
            sides: of the data; they name the columns.

        Raises:
            InputError: a probe cannot run under these objectives, or needs more than a training batch has.
        """
        probes = tuple(build("probes", spec) for spec in self.probes)
        one_batch = [OneBatch(objective, probes, sides) for objective in objectives]
        S = torch.eye(2)  # try the probes on a batch of two
        for run_probes in one_batch:
            run_probes([DirectionRows(S, pair_mask(torch.arange(2)), *((S, S) if embeddings else ()))])
        columns = tuple(dict.fromkeys(name for run_probes in one_batch for name in run_probes.columns))
        return BatchMonitor(run, probes, self.every, columns, embeddings and one_batch[0].needs_embeddings, sides)


@dataclass(frozen=True)
class BatchMonitor:
    """Writes a row of probes.csv for every n-th step."""

    run: Run
    probes: tuple[Probe, ...]
    every: int
    columns: tuple[str, ...]
    needs_embeddings: bool  # in `mask.info`
    sides: Sides = IMAGE_TEXT  # they name the columns

    def record(self, epoch: int, step: int, objective: Objective, S: Tensor, mask: Mask | Pair[Mask]) -> None:
        """Run the probes on the batch before the update, on every n-th step.

        Args:
            epoch: from 0.
            step: of the epoch, from 0.
            objective: of the batch.
            S: (images, captions); offline rows and columns beyond the mask do not count.
            mask: i2t, or the masks of both directions.
        """
        if step % self.every:
            return
        of_images, of_captions = both_masks(mask)
        q, c = of_images.match.shape
        S = S.detach()[:q, :c]
        images, captions = (of_images.info.get(name) for name in ("queries", "candidates"))
        images, captions = None if images is None else images[:q], None if captions is None else captions[:c]
        one_batch = OneBatch(objective, self.probes, self.sides)
        with deterministic_kernels(False):
            rows = [DirectionRows(S, of_images, images, captions)]
            if isinstance(mask, Pair):
                rows.append(DirectionRows(S.T, of_captions, captions, images))
            finite, values = one_batch(rows)
        statistics: dict[str, object] = {
            name: value if finite else math.nan for name, value in zip(one_batch.columns, values, strict=True)
        }
        name = spec_of(objective).partition(":")[0]
        row = {"epoch": epoch + 1, "step": step + 1, "objective": name}
        self.run.append(self.run.probes, [{**row, **{column: statistics.get(column, "") for column in self.columns}}])
