"""What is measured while a model trains: statistics of every so many batches, which never change what is trained."""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.engine.one_batch import OneBatch
from lossscope.errors import InputError
from lossscope.io.files import write_text
from lossscope.io.run_folder import Run
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.registry import build, spec_of


@dataclass(frozen=True)
class ProbeSchedule:
    """probes: specs. every: the first step of an epoch and each so many after it are looked at.

    No part of the recipe: a run's numbers are the same with and without. Raises InputError for values out of range.
    """

    probes: tuple[str, ...]
    every: int = 100

    def __post_init__(self) -> None:
        if self.every < 1 or not self.probes:
            raise InputError(f"every must be at least 1, and probes some; got {self.every} and {self.probes}")

    def canonical(self) -> ProbeSchedule:
        """The same with every spec written in full."""
        return ProbeSchedule(tuple(dict.fromkeys(spec_of(build("probes", spec)) for spec in self.probes)), self.every)

    def write(self, path: Path) -> None:
        """As TOML, which a resume reads."""
        listed = json.dumps(list(self.probes), ensure_ascii=False)
        told = "# What is measured of batches while this run trains, in probes.csv; a resume goes on with it."
        write_text(path, f"{told}\nevery = {self.every}\nprobes = {listed}\n")

    @classmethod
    def read(cls, path: Path) -> ProbeSchedule:
        """From TOML. Raises InputError for a file that is not TOML, or says something else."""
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
            probes, every = found.pop("probes"), found.pop("every")
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as error:
            raise InputError(f"{path} must be a TOML file with probes and every; {error!r}") from error
        if found or type(every) is not int or not isinstance(probes, list) or not all(type(p) is str for p in probes):
            raise InputError(f"{path} must have probes, a list of specs, and every, a whole number; got other things")
        return cls(tuple(probes), every)

    def watcher(self, run: Run, objectives: Sequence[Objective], embeddings: bool) -> BatchMonitor:
        """What looks at the batches of a run. objectives: all that it trains with. embeddings: whether it has any.

        Raises InputError when a probe can not look at them, or asks for more than a batch in training has, which a
        batch of two tells.
        """
        probes = tuple(build("probes", spec) for spec in self.probes)
        glances = [OneBatch(objective, probes) for objective in objectives]
        S = torch.eye(2)
        for glance in glances:
            glance(S, pair_mask(S), *((S, S) if embeddings else ()))
        columns = tuple(dict.fromkeys(name for glance in glances for name in glance.columns))
        return BatchMonitor(run, probes, self.every, columns, embeddings and glances[0].needs_embeddings)


@dataclass(frozen=True)
class BatchMonitor:
    """Writes a row of probes.csv for each step it looks at. embeddings: whether its probes want them in `mask.info`."""

    run: Run
    probes: tuple[Probe, ...]
    every: int
    columns: tuple[str, ...]
    needs_embeddings: bool

    def watch(self, epoch: int, step: int, objective: Objective, S: Tensor, mask: Mask) -> None:
        """Step `step` of epoch `epoch`, both from 0: the batch as it is trained, before the update.

        S may have offline rows and columns after those of the mask, which are left out.
        """
        if step % self.every:
            return
        q, c = mask.match.shape
        images, captions = (mask.info.get(name) for name in ("queries", "candidates"))
        glance = OneBatch(objective, self.probes)
        with _as_kernels_come():
            finite, values = glance(
                S.detach()[:q, :c],
                mask,
                None if images is None else images[:q],
                None if captions is None else captions[:c],
            )
        found: dict[str, object] = {
            name: value if finite else math.nan for name, value in zip(glance.columns, values, strict=True)
        }
        name = spec_of(objective).partition(":")[0]
        row = {"epoch": epoch + 1, "step": step + 1, "objective": name}
        self.run.append(self.run.probes, [{**row, **{column: found.get(column, "") for column in self.columns}}])


@contextlib.contextmanager
def _as_kernels_come() -> Iterator[None]:
    """Without deterministic kernels, which not all that probes ask has; training's own setting is put back."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
