"""Jobs of a Slurm cluster, through submitit (extra [slurm])."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError

from .base import command, last_line


@dataclass(frozen=True)
class Slurm:
    """jobs: waiting or running at once. minutes, gpus, cpus: of each. partition: None takes the cluster's own.

    cluster: `slurm`, or `local`, which runs the same jobs as processes here, to try a study out. The folder of the
    study must be one that the nodes see. Raises InputError where submitit is not installed, or for numbers below 1.
    """

    jobs: int = 16
    minutes: int = 240
    gpus: int = 1
    cpus: int = 4
    partition: str | None = None
    cluster: str = "slurm"

    def __post_init__(self) -> None:
        if min(self.jobs, self.minutes, self.cpus) < 1 or self.gpus < 0:
            told = f"{self.jobs}, {self.minutes}, {self.cpus} and {self.gpus}"
            raise InputError(f"jobs, minutes and cpus must be at least 1, gpus at least 0; got {told}")
        if importlib.util.find_spec("submitit") is None:
            raise InputError("slurm needs submitit; install it with `pip install 'lossscope[slurm]'`")

    @property
    def at_once(self) -> int:
        """How many cells wait or run."""
        return self.jobs

    def start(self, arguments: Sequence[str], log: Path) -> _Submitted:
        import submitit

        executor = submitit.AutoExecutor(folder=log.parent / "slurm", cluster=self.cluster)
        told: dict[str, Any] = {"timeout_min": self.minutes, "cpus_per_task": self.cpus, "name": "lossscope"}
        if self.cluster == "slurm":
            told |= {"gpus_per_node": self.gpus}
            told |= {"slurm_partition": self.partition} if self.partition else {}
        executor.update_parameters(**told)
        return _Submitted(executor.submit(submitit.helpers.CommandFunction(command(arguments), verbose=False)))


@dataclass(frozen=True)
class _Submitted:
    """A submitit job."""

    job: Any

    def poll(self) -> int | None:
        if not self.job.done():
            return None
        return 1 if self.job.exception() else 0

    def stop(self) -> None:
        self.job.cancel()

    def last(self) -> str:
        return last_line(self.job.stderr() or self.job.stdout() or "")
