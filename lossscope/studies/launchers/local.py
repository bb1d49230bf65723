"""Run several processes of this machine at once, which share its cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .base import Process, command


@dataclass(frozen=True)
class Local:
    """Start every run as a process of this machine, with an equal share of the cores as threads.

    A process whose parent ends, even by kill -9, saves its state and ends too. Raises InputError for jobs < 0.
    """

    jobs: int = 0  # runs at once; 0: one per core, at most four

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise InputError(f"jobs must be at least 0; got {self.jobs}")

    @property
    def at_once(self) -> int:
        """Number of runs at once."""
        return self.jobs or min(_cores(), 4)

    def start(self, arguments: Sequence[str], log: Path) -> Process:
        threads = os.environ.get("OMP_NUM_THREADS") or str(max(_cores() // self.at_once, 1))
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "LOSSSCOPE_PARENT": str(os.getpid())}
        return Process(command(arguments), log, environment)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
