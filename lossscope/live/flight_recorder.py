"""Keep the last steps of a running loop in bounded memory, and write them as dumps when something is wrong."""

from __future__ import annotations

import logging
import re
import shutil
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lossscope.core.distributed import process_group
from lossscope.core.similarity import Mask
from lossscope.io.files import write_atomically
from lossscope.io.folder_lock import lock_folder
from lossscope.io.manifests import write_manifest
from lossscope.io.versions import versions
from lossscope.objectives.base import Objective
from lossscope.registry import short_spec

from .observed import RECORDER_BYTES
from .recorded_step import RecordedStep, mask_bytes, names_of, needed_bytes, on_host
from .watched_step import WatchedStep

SCHEMA = "lossscope.recorder/1"
LOGGER = logging.getLogger("lossscope")
MANIFEST, LOG = "manifest.json", "log.csv"
_CAUSE = re.compile(r"[^a-z0-9-]+")


@dataclass
class FlightRecorder:
    """Keep the newest steps, and write them into a folder `step-000123-REASON`, once for each reason.

    The folder has a dump for each step, `step-000123.npz`, which every command opens; the last dump is the batch in
    which it happened. log.csv has a row for each step, and manifest.json lists the steps without room for a dump. No
    failure stops the loop: each is logged.
    """

    keep: int  # steps, at most
    folder: Path
    limit: int = RECORDER_BYTES  # bytes of their tensors and ids, at most: of large batches it keeps fewer steps
    _kept: deque[RecordedStep] = field(default_factory=deque, init=False)
    _mask: Mask | None = field(default=None, init=False)  # of the newest step, on its device
    _too_large: int = field(default=0, init=False)  # steps that alone exceed the limit
    _written: dict[str, Path | None] = field(default_factory=dict, init=False)  # reason -> folder; None: it failed
    _faults: set[type[Exception]] = field(default_factory=set, init=False)  # of failed copies, already logged

    @property
    def bytes(self) -> int:
        """Bytes of the kept tensors and ids."""
        masks = {id(kept.mask): kept.mask for kept in self._with_copy}
        return sum(kept.bytes for kept in self._with_copy) + sum(map(mask_bytes, masks.values()))

    @property
    def written(self) -> tuple[Path, ...]:
        """The folders that were written."""
        return tuple(folder for folder in self._written.values() if folder is not None)

    @property
    def _with_copy(self) -> list[RecordedStep]:
        return [kept for kept in self._kept if kept.copy is not None]

    def add(self, step: WatchedStep) -> None:
        """Keep a step. Raises InputError unless there is an id for each item."""
        batch, mask, row = step.batch, step.batch.first.mask, {"step": step.number, **step.row, **step.logged}
        newest = RecordedStep(row, step.objective, names_of(batch, step.ids))
        self._kept.append(newest)
        if len(self._kept) > self.keep:
            self._kept.popleft()
        newest.bytes = needed_bytes(batch, newest.ids)
        if newest.bytes + mask_bytes(mask) > self.limit:
            self._too_large += 1
            return
        last = next(reversed(self._with_copy), None)  # masks of pairs are the same in every batch: keep one
        known = last.mask if last is not None and mask is self._mask else None
        try:
            newest.copy = on_host(batch, known)
        except Exception as error:
            if type(error) not in self._faults:
                self._faults.add(type(error))
                LOGGER.exception("the flight recorder could not copy step %d; the loop goes on", newest.step)
            return
        self._mask = mask
        for oldest in self._with_copy:
            if self.bytes <= self.limit:
                break
            oldest.copy = None

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers to the row of the newest step."""
        if self._kept:
            self._kept[-1].row.update(numbers)

    def write(self, reason: str, details: Mapping[str, Any] | None = None) -> Path | None:
        """Write the kept steps, once for each reason; return the folder, or None where nothing is kept or it failed.

        A failure is logged, once for each reason, and leaves no folder.

        Args:
            reason: id of a finding, or `exception`.
            details: plain values for the manifest.
        """
        reason = _CAUSE.sub("-", reason.lower()).strip("-")
        if reason in self._written or not self._kept:
            return self._written.get(reason)
        self._written[reason] = None
        try:
            self._written[reason] = folder = self._write_folder(reason, details or {})
        except Exception as error:
            LOGGER.error("the flight recorder could not write %s: %s: %s", self.folder, type(error).__name__, error)
            return None
        if self._kept[-1].copy is None:
            text = "the flight recorder wrote %s without the newest batch: it has room for %s bytes"
            LOGGER.warning(text, folder, f"{self.limit:,}")
        else:
            LOGGER.info("the flight recorder wrote %s", folder)
        return folder

    def _write_folder(self, reason: str, details: Mapping[str, Any]) -> Path:
        """Make a folder and write into it; remove it if writing fails."""
        folder = self._make_folder(reason)
        try:
            with lock_folder(folder):
                self._write(folder, reason, details)
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _make_folder(self, reason: str) -> Path:
        """Return a new folder, named after the newest step, and the process if there are several."""
        name = f"step-{self._kept[-1].step:06d}-{reason}{_process()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        number, folder = 1, self.folder / name
        while True:
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                number += 1
                folder = self.folder / f"{name}-{number}"

    def _write(self, folder: Path, reason: str, details: Mapping[str, Any]) -> None:
        files: list[dict[str, Any]] = []
        for kept in self._with_copy:
            name = f"step-{kept.step:06d}.npz"
            weights, reasons = kept.weights()
            with write_atomically(folder / name) as part, open(part, "wb") as file:
                np.savez(file, **kept.arrays(), **weights)  # type: ignore[arg-type]
            spec = None if kept.objective is None else _label(kept.objective)
            files.append({"step": kept.step, "file": name, "objective": spec, "sides": kept.batch.sides.text})
            files[-1] |= {"not_computed": reasons} if reasons else {}
        with write_atomically(folder / LOG) as part:
            pd.DataFrame([kept.row for kept in self._kept]).to_csv(part, index=False, lineterminator="\n")
        write_manifest(folder / MANIFEST, {
            "schema": SCHEMA, "reason": reason, "step": self._kept[-1].step, "details": dict(details),
            "dumps": files, "missing": [kept.step for kept in self._kept if kept.copy is None], "log": LOG,
            "asked": self.keep, "kept": len(files), "bytes": self.bytes, "limit": self.limit,
            "too_large": self._too_large, "versions": versions(),
        })  # fmt: skip


def _process() -> str:
    """Return `-rank1` in a job of several processes, each of which writes its own batches."""
    processes = process_group()
    return "" if processes.size == 1 else f"-rank{processes.rank}"


def _label(objective: Objective) -> str:
    try:
        return short_spec(objective)
    except Exception:  # of any kind, as objectives of users may be
        return type(objective).__name__
