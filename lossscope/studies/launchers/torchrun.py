"""Train run after run, each by several processes that torchrun starts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.core.parent_process import SAFE_PATH
from lossscope.errors import InputError

from .base import Process

_SIGNAL = re.compile(r"Signal (\d+) \(SIG\w+\) received by PID|Process \d+ got signal: (\d+)")


@dataclass(frozen=True)
class Torchrun:
    """Train each run by several processes, which share its batches and compute the same as one (docs/processes.md).

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
        environment[SAFE_PATH] = "1"  # -P reaches torchrun itself, not the processes that it starts
        command = [sys.executable, "-P", "-m", "torch.distributed.run", *options, *arguments]
        return TorchrunProcess(command, log, environment)


class TorchrunProcess(Process):
    """torchrun, which exits with 1 even if a signal ended a process; its report names the signal."""

    def poll(self) -> int | None:
        """Return the exit code, or minus the number of the signal that ended a process or torchrun itself."""
        code = super().poll()
        if code != 1:
            return code
        match = _SIGNAL.search(self.output())
        return -int(match[1] or match[2]) if match else code
