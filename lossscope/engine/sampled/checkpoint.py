"""Keep the sums of finished strips beside a frame, so that a killed pass resumes after the last of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lossscope.errors import InputError
from lossscope.io.digests import digests_of, require_digests
from lossscope.io.files import read_torch, write_atomically
from lossscope.io.json_files import member
from lossscope.io.reading import reading

if TYPE_CHECKING:
    from lossscope.io.frames import Frame

NAME = "strips.pt"  # in the folder of the frame; removed when the frame is complete
EVERY = 15.0  # seconds between two writings, at least
_SCHEMA = "lossscope.strips/3"
_ADVICE = "Remove it: the next run reads its strips again"


@dataclass(frozen=True, eq=False)
class StripsFile:
    """The file of all passes of a sweep: label and step -> strips done, and their state."""

    path: Path | None  # None: nothing is kept
    label: str = ""  # of the pass to load and save
    passes: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    written: list[float] = field(default_factory=lambda: [time.monotonic()], repr=False)  # time of the last writing

    @classmethod
    def beside(cls, frame: Frame | None) -> StripsFile:
        """Return the file beside a frame, with its passes; without a frame, nothing is kept.

        Raises InputError for a file of another schema, and for one that is not what was written.
        """
        file = cls(None if frame is None else frame.path / NAME)
        if file.path is None or not file.path.is_file():
            return file
        content = read_torch(file.path)
        if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
            raise InputError(f"{file.path} must be of the schema {_SCHEMA}; it is not. {_ADVICE}")
        passes = member(content, "passes", dict, str(file.path))
        require_digests(file.path, {"passes": passes}, member(content, "digests", dict, str(file.path)))
        for label, entry in passes.items():
            member(entry, "done", int, f"a pass of {file.path}")
            file.passes[label] = {"done": entry["done"], "state": entry.get("state")}
        return file

    def of(self, label: str) -> StripsFile:
        """Return the same file for a pass; the label names its queries and statistics."""
        return replace(self, label=label)

    def load(self, step: str) -> tuple[int, Any]:
        """Return the number of finished strips of the pass, and their state."""
        entry = self.passes.get(f"{self.label} {step}")
        return (0, None) if entry is None else (int(entry["done"]), entry["state"])

    def save(self, step: str, done: int, state: Callable[[], Any], is_complete: bool) -> None:
        """Keep the state of `done` strips; write it if the last writing is long ago or the pass is complete."""
        if self.path is None:
            return
        self.passes[f"{self.label} {step}"] = {"done": done, "state": state()}
        if is_complete or time.monotonic() - self.written[0] >= EVERY:
            self.write()

    def write(self) -> None:
        """Write the passes, if there are any."""
        if self.path is not None and self.passes:
            content = {"schema": _SCHEMA, "passes": self.passes, "digests": digests_of({"passes": self.passes})}
            with write_atomically(self.path) as part:
                torch.save(content, part)
            self.written[0] = time.monotonic()

    def restoring(self) -> AbstractContextManager[None]:
        """Raise InputError, naming the file, for a state that is not one of this sweep."""
        return reading(self.path or NAME, "the sums of finished strips of this sweep", _ADVICE)

    def remove(self) -> None:
        """Remove the file: the frame has the numbers."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
