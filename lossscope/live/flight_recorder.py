"""The last steps of a running loop in bounded memory, written as dumps when something is wrong."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import distributed

from lossscope.core.similarity import Mask
from lossscope.errors import InputError
from lossscope.io.files import write_atomically
from lossscope.io.folder_lock import lock_folder
from lossscope.io.manifests import write_manifest
from lossscope.io.versions import versions
from lossscope.objectives.base import Objective
from lossscope.registry import short_spec

from .observed import Observed, Row
from .recorded_step import Ids, RecordedStep, mask_bytes

SCHEMA = "lossscope.recorder/1"
LOGGER = logging.getLogger("lossscope")
MANIFEST, LOG = "manifest.json", "log.csv"
_CAUSE = re.compile(r"[^a-z0-9-]+")


@dataclass
class FlightRecorder:
    """Keeps the newest steps and writes them into a folder of their own, `step-000123-REASON`, once for each reason.

    The folder has a dump for each step, `step-000123.npz`, which every command opens; the last is the batch in which it
    happened. Beside them are log.csv, a row for each step, and manifest.json.
    """

    keep: int  # steps, at most
    folder: Path
    limit: int  # bytes of their tensors, at most: fewer steps are kept of large batches
    _steps: deque[RecordedStep] = field(default_factory=deque, init=False)
    _rows: deque[Row] = field(default_factory=deque, init=False)
    _bytes: int = field(default=0, init=False)
    _masks: dict[int, int] = field(default_factory=dict, init=False)  # id of a mask -> steps that have it
    _mask: Mask | None = field(default=None, init=False)  # of the newest step, on its device
    _too_large: int = field(default=0, init=False)  # steps that alone exceed the limit
    _written: dict[str, Path] = field(default_factory=dict, init=False)  # reason -> folder

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the steps that are kept."""
        return tuple(one.step for one in self._steps)

    @property
    def bytes(self) -> int:
        """What their tensors need."""
        return self._bytes

    @property
    def written(self) -> tuple[Path, ...]:
        """The folders that were written."""
        return tuple(self._written.values())

    def add(
        self, observed: Observed, objective: Objective | None, step: int, ids: tuple[Ids | None, Ids | None], row: Row
    ) -> None:
        """Keep a step. Raises InputError for ids that are not one an item.

        Args:
            observed: its batch, with rows.
            objective: whose W is written; None: it is not known.
            step: its number.
            ids: of the items of both sides.
            row: its statistics, which later numbers are added to.
        """
        last = self._steps[-1] if self._steps else None
        one = RecordedStep.of(observed, objective, step, ids, last, self._mask)
        self._rows.append(row)
        if len(self._rows) > self.keep:
            self._rows.popleft()
        if one.bytes + mask_bytes(one.mask) > self.limit:
            self._too_large += 1
            return
        self._mask = observed.rows.mask if observed.rows is not None else None
        self._steps.append(one)
        self._bytes += one.bytes + self._mask_bytes(one, 1)
        while len(self._steps) > self.keep or self._bytes > self.limit:
            oldest = self._steps.popleft()
            self._bytes -= oldest.bytes + self._mask_bytes(oldest, -1)

    def _mask_bytes(self, one: RecordedStep, change: int) -> int:
        """Count a step that has a mask, or that had it; return the bytes where it is the first or the last one."""
        key = id(one.mask)
        number = self._masks[key] = self._masks.get(key, 0) + change
        if not number:
            del self._masks[key]
        return mask_bytes(one.mask) if number == (1 if change > 0 else 0) else 0

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers to the row of the newest step."""
        if self._rows:
            self._rows[-1].update(numbers)

    def write(self, reason: str, details: Mapping[str, Any] | None = None) -> Path | None:
        """Write what is kept, once for each reason; return the folder, None where nothing is kept or it failed.

        A failure is logged: it never stops the loop.

        Args:
            reason: id of a finding, or `exception`.
            details: plain values about it, for the manifest.
        """
        reason = _CAUSE.sub("-", reason.lower()).strip("-")
        if reason in self._written or not self._rows:
            return self._written.get(reason)
        try:
            folder = self._new_folder(reason)
            with lock_folder(folder):
                self._write(folder, reason, details or {})
        except (InputError, OSError, ValueError) as error:
            LOGGER.error("the flight recorder could not write %s: %s", self.folder, error)
            return None
        self._written[reason] = folder
        LOGGER.info("the flight recorder wrote %s", folder)
        return folder

    def _new_folder(self, reason: str) -> Path:
        """Return a folder that is not there yet, named after the newest step, and the process where there are many."""
        name = f"step-{int(self._rows[-1]['step']):06d}-{reason}{_process()}"
        number, folder = 1, self.folder / name
        while folder.exists():
            number += 1
            folder = self.folder / f"{name}-{number}"
        return folder

    def _write(self, folder: Path, reason: str, details: Mapping[str, Any]) -> None:
        files = []
        for one in self._steps:
            name = f"step-{one.step:06d}.npz"
            with write_atomically(folder / name) as part, open(part, "wb") as file:
                np.savez(file, **one.arrays())  # type: ignore[arg-type]
            spec = None if one.objective is None else _label(one.objective)
            files.append({"step": one.step, "file": name, "objective": spec, "sides": one.sides.text})
        with write_atomically(folder / LOG) as part:
            pd.DataFrame(list(self._rows)).to_csv(part, index=False, lineterminator="\n")
        write_manifest(folder / MANIFEST, {
            "schema": SCHEMA, "reason": reason, "step": int(self._rows[-1]["step"]), "details": dict(details),
            "dumps": files, "log": LOG, "asked": self.keep, "kept": len(files), "bytes": self._bytes,
            "limit": self.limit, "too_large": self._too_large, "versions": versions(),
        })  # fmt: skip


def _process() -> str:
    """Return `-rank1` in a job of several processes, each of which writes its own batches."""
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
        return ""
    return f"-rank{distributed.get_rank()}"


def _label(objective: Objective) -> str:
    try:
        return short_spec(objective)
    except (TypeError, AttributeError):
        return type(objective).__name__
