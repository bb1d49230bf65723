"""Processes of this machine, so many at once, sharing its cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .base import Process, command


@dataclass(frozen=True)
class Local:
    """jobs: cells at once; 0: one a core, four at most. Each gets its share of the cores as threads.

    One that loses its parent, even to kill -9, keeps what it has and ends. Raises InputError for jobs < 0.
    """

    jobs: int = 0

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise InputError(f"jobs must be at least 0; got {self.jobs}")

    @property
    def at_once(self) -> int:
        """How many cells run together."""
        return self.jobs or min(_cores(), 4)

    def start(self, arguments: Sequence[str], log: Path) -> Process:
        threads = os.environ.get("OMP_NUM_THREADS") or str(max(_cores() // self.at_once, 1))
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "LOSSSCOPE_PARENT": str(os.getpid())}
        return Process(command(arguments), log, environment)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
