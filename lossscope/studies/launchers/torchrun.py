"""One run after the other, each trained by several processes that torchrun starts."""

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
    """Train every run by several processes, which share its batches and compute what one would (docs/processes.md).

    Raises InputError for processes < 1.
    """

    processes: int = 2  # processes of a run

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise InputError(f"processes must be at least 1; got {self.processes}")

    @property
    def at_once(self) -> int:
        """1: a run has all processes."""
        return 1

    def start(self, arguments: Sequence[str], log: Path) -> Process:
        options = ["--standalone", f"--nproc-per-node={self.processes}", "-m", "lossscope_cli"]
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "LOSSSCOPE_PARENT": str(os.getpid())}
        return Process([sys.executable, "-m", "torch.distributed.run", *options, *arguments], log, environment)
