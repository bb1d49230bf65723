"""At which step and epoch is a printed line? It says `Epoch: [1/125][20/176]`, `Epoch 3/10`, `12/390 [=>...]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_EPOCH = re.compile(
    r"\bepoch\b(?:\(\w+\))?[\s:=#]*\[?\s*(\d+(?:\.\d+)?)(?:\s*/\s*\d+)?\s*\]?", re.IGNORECASE
)  # number / total
_BATCH = re.compile(r"(?<![\w./\-])(\d+)\s*/\s*(\d+)(?![\w./])")  # number / total, of an epoch or of the training


@dataclass
class LinePlaces:
    """Count steps through all epochs: a batch with a lower number than the batch before begins the next epoch."""

    epoch: float | None = None  # from the newest line that has it
    step: float | None = None  # of the whole training, from the newest line that has it
    _passed: float = field(default=0.0, init=False)  # steps of the epochs before
    _newest: tuple[float, float] | None = field(default=None, init=False)  # batch, total

    def see(self, line: str) -> None:
        """Read step and epoch from the next line of training, if it has them."""
        if match := _EPOCH.search(line):
            self.epoch = float(match[1])
            line = line[: match.start()] + " " + line[match.end() :]
        if not (match := _BATCH.search(line)):
            return
        batch, total = float(match[1]), float(match[2])
        if batch > total:
            return
        if self._newest is not None and batch < self._newest[0]:
            self._passed += self._newest[1]
        self._newest = batch, total
        self.step = self._passed + batch
