"""The sums of strips that are done, kept beside a frame, so that a killed pass resumes after the last of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from lossscope.errors import InputError
from lossscope.io.files import read_torch, write_atomically
from lossscope.io.frames import Frame
from lossscope.io.json_files import member

NAME = "strips.pt"  # in the folder of the frame; removed when the frame is complete
EVERY = 15.0  # seconds between two writings, at least
_SCHEMA = "lossscope.strips/2"


@dataclass(frozen=True, eq=False)
class StripsFile:
    """The file of all passes of a sweep: label -> strips done, and their state."""

    path: Path | None  # None: nothing is kept
    _passes: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False)
    _written: list[float] = field(default_factory=lambda: [time.monotonic()], init=False, repr=False)

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_file():
            return
        content = read_torch(self.path)
        if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
            raise InputError(
                f"{self.path} must be of the schema {_SCHEMA}; it is not. Remove it: its strips are read again"
            )
        for label, entry in member(content, "passes", dict, str(self.path)).items():
            member(entry, "done", int, f"a pass of {self.path}")
            self._passes[label] = {"done": entry["done"], "state": entry.get("state")}

    def of(self, label: str) -> PassCheckpoint:
        """Return the checkpoint of a pass; a label says which queries and what is computed of them."""
        return PassCheckpoint(self, label)

    def load(self, label: str) -> tuple[int, Any]:
        """Return how many strips of a pass are done, and their state."""
        entry = self._passes.get(label)
        return (0, None) if entry is None else (int(entry["done"]), entry["state"])

    def save(self, label: str, done: int, state: Any, at_once: bool) -> None:
        """Keep the state of a pass; it is written when the last writing is long ago, or `at_once`."""
        if self.path is None:
            return
        self._passes[label] = {"done": done, "state": state}
        if at_once or time.monotonic() - self._written[0] >= EVERY:
            self.write()

    def write(self) -> None:
        """Write what is kept, if anything is."""
        if self.path is not None and self._passes:
            with write_atomically(self.path) as part:
                torch.save({"schema": _SCHEMA, "passes": self._passes}, part)
            self._written[0] = time.monotonic()

    def remove(self) -> None:
        """Remove the file: the frame has the numbers."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def strips_file(frame: Frame | None) -> StripsFile:
    """Return the file beside a frame; of none, nothing is kept."""
    return StripsFile(None if frame is None else frame.path / NAME)


@dataclass(frozen=True, eq=False)
class PassCheckpoint:
    """The part of a StripsFile that is of one pass."""

    file: StripsFile
    label: str

    def load(self, step: str) -> tuple[int, Any]:
        """Return how many strips are done, and their state."""
        return self.file.load(f"{self.label} {step}")

    def write(self) -> None:
        """Write what is kept."""
        self.file.write()

    def save(self, step: str, done: int, state: Callable[[], Any], is_complete: bool) -> None:
        """Keep the state of `done` strips."""
        if self.file.path is not None:
            self.file.save(f"{self.label} {step}", done, state(), is_complete)
