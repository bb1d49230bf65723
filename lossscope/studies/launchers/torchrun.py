"""One cell after the other, each trained by several processes that torchrun starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .base import Process


@dataclass(frozen=True)
class Torchrun:
    """processes: of each cell; they share its batches with the numbers of one process (docs/processes.md).

    Raises InputError for less than 1.
    """

    processes: int = 2

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise InputError(f"processes must be at least 1; got {self.processes}")

    @property
    def at_once(self) -> int:
        """One: a cell has all processes."""
        return 1

    def start(self, arguments: Sequence[str], log: Path) -> Process:
        many = ["--standalone", f"--nproc-per-node={self.processes}", "-m", "lossscope_cli"]
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "LOSSSCOPE_PARENT": str(os.getpid())}
        return Process([sys.executable, "-m", "torch.distributed.run", *many, *arguments], log, environment)
