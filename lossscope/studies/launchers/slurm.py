"""Submit jobs to a Slurm cluster, through submitit (extra [slurm])."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.core.parent_process import SAFE_PATH, no_modules_of_the_current_folder
from lossscope.errors import InputError, needing

from .base import command, last_line

_ENDED_BY_CLUSTER = ("TIMEOUT", "PREEMPTED", "NODE_FAIL", "CANCELLED")  # states in which a job can be resumed


@dataclass(frozen=True)
class Slurm:
    """Submit every run as a job of a Slurm cluster. The nodes must be able to read and write the study's folder.

    Raises InputError if submitit is not installed, and for numbers below 1 (gpus: below 0).
    """

    jobs: int = 16  # jobs that wait or run at once
    minutes: int = 240  # time limit of a job
    gpus: int = 1  # GPUs of a job
    cpus: int = 4  # cores of a job
    partition: str | None = None  # of the cluster; None: its default
    cluster: str = "slurm"  # slurm, or local: the same jobs as processes of this machine, to try a study out

    def __post_init__(self) -> None:
        if min(self.jobs, self.minutes, self.cpus) < 1 or self.gpus < 0:
            numbers = f"{self.jobs}, {self.minutes}, {self.cpus} and {self.gpus}"
            raise InputError(f"jobs, minutes and cpus must be at least 1, gpus at least 0; got {numbers}")
        with needing("slurm", "slurm needs submitit"):
            importlib.import_module("submitit")

    @property
    def at_once(self) -> int:
        """Number of jobs that wait or run at once."""
        return self.jobs

    def start(self, arguments: Sequence[str], log: Path) -> _SlurmJob:
        import submitit

        executor = submitit.AutoExecutor(folder=log.parent / "slurm", cluster=self.cluster)
        options: dict[str, Any] = {"timeout_min": self.minutes, "cpus_per_task": self.cpus, "name": "lossscope"}
        if self.cluster == "slurm":
            options |= {"gpus_per_node": self.gpus, "slurm_setup": [f"export {SAFE_PATH}=1"]}
            options |= {"slurm_partition": self.partition} if self.partition else {}
        executor.update_parameters(**options)
        with no_modules_of_the_current_folder():  # submitit starts `python -m`
            return _SlurmJob(executor.submit(submitit.helpers.CommandFunction(command(arguments), verbose=False)))


@dataclass(frozen=True)
class _SlurmJob:
    """A submitit job."""

    job: Any

    def poll(self) -> int | None:
        if not self.job.done():
            return None
        if any(str(self.job.state).startswith(state) for state in _ENDED_BY_CLUSTER):
            return -signal.SIGTERM
        return 1 if self.job.exception() else 0

    def stop(self) -> None:
        self.job.cancel()

    def last(self) -> str:
        return last_line(self.job.stderr() or self.job.stdout() or "")
