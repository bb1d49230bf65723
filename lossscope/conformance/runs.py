"""The calls of a step that the checks compare, and those on several new processes; runs_alone has those on one."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from lossscope.core.distributed import process_group
from lossscope.objectives.checks.spawn import join_file_group, run_processes
from lossscope.registry import build

from .row_derivatives import LostRows, lost_rows
from .step_gradient import Layout, StepGradient, step_gradient
from .trainers.base import Trainer
from .trial import Trial

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
CHUNKS = (1, 3)  # rows: 3 does not divide a share
ROWS_TOGETHER = 4  # of each side, whose gradient is compared with the values of several processes
PATIENCE = datetime.timedelta(seconds=60)  # for a process that waits for what another never sends


@dataclass(frozen=True)
class Runs:
    """Results of the calls by name; what a call raised, where it raised something."""

    results: dict[str, StepGradient] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    precision: float = 1e-9  # relative, of what differs by rounding alone
    dtype: torch.dtype = torch.float64
    layout: Layout = "stacked"  # of mined negatives, in which the step runs
    cone: float = 0.0  # of the embeddings, at which the step has negatives
    lost: LostRows | None = None  # None: not measured

    def get(self, name: str) -> StepGradient | None:
        """Return the result of a call; None where it was not made, or raised an error."""
        return self.results.get(name)


def run_together(trial: Trial, alone: Runs, moves: bool) -> Runs:
    """Make the calls of several processes, in new ones.

    Args:
        trial: what is tried.
        alone: the calls of one process.
        moves: whether embeddings are moved, to compare gradients with values. A process that refuses one would leave
            the others waiting.

    Raises:
        ProcessError: when one fails or they do not finish.
    """
    runs: Runs = run_processes(_together, trial.processes, trial, alone.dtype, alone.precision, moves)
    return runs


def _together(
    rank: int, processes: int, file: Path, trial: Trial, dtype: torch.dtype, precision: float, moves: bool
) -> Runs:
    trainer: Trainer = build("trainers", trial.trainer)
    call = trial.call(rank, dtype)
    embeddings = trial.embeddings()
    calls = {"plain": (embeddings, call)}
    if trainer.takes_negatives:
        calls["mined"] = (trial.embeddings(mined=True), call)
    if trainer.is_chunked:
        calls[f"chunks of {CHUNKS[-1]}"] = (embeddings, replace(call, chunk_size=CHUNKS[-1]))
    runs = Runs(dtype=dtype)
    with join_file_group(file, rank, processes, PATIENCE, trial.backend, trial.place(rank)):
        for name, (called, how) in calls.items():
            runs.results[name] = step_gradient(trainer, called, how, trial.mean)
        if trial.plain is not None:
            reference: Trainer = build("trainers", trial.plain)
            runs.results["reference"] = step_gradient(reference, embeddings, call, trial.mean)
        if moves:
            factor, plain = 1.0 if trial.mean else float(processes), runs.results["plain"]
            lost = lost_rows(trainer, embeddings, call, plain, precision, factor, ROWS_TOGETHER)
            runs = replace(runs, lost=lost)
        process_group().barrier()
    return runs
