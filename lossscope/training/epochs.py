"""Train the remaining epochs, step by step; save the state at intervals, and at a stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from lossscope.core.interrupts import stop_on_signals
from lossscope.errors import Interrupted, Stopped
from lossscope.io.files import write_atomically
from lossscope.io.run_folder import Run
from lossscope.registry import spec_of
from lossscope.sources.checkpoints.checkpoint import stored_tokens

from .batching import epoch_batches
from .data_parallel import checksums, require_agreement
from .kernels import deterministic_kernels
from .monitor import BatchMonitor
from .observers import Observers
from .optimisers import loss_factor, set_rates
from .soft_labels import estimate_labels
from .state import TrainState, shared_values, snapshot
from .step import Step, train_step
from .task import Task
from .trained_batch import TrainedBatch
from .validation import validate_and_save


@dataclass(frozen=True)
class Outputs:
    """The folder and the observers of a training."""

    run: Run
    save_every: int  # steps between saves inside an epoch
    observers: Observers
    monitor: BatchMonitor | None = None
    reasons: list[str] = field(default_factory=list)  # why `on_batch` wants training to stop


def train_epochs(task: Task, state: TrainState, outputs: Outputs) -> Run:
    """Train the remaining epochs.

    Raises InputError when it diverges, Interrupted after SIGINT or SIGTERM, and Stopped if `on_batch` asks for it.
    """
    run, processes = outputs.run, task.processes
    with deterministic_kernels(True), stop_on_signals() as stop:
        if state.epoch == 0 and state.step == 0:
            _validate(task, state, outputs)
        while state.epoch < task.recipe.epochs:
            begun = time.monotonic()
            _epoch(task, state, outputs, stop)
            state.epoch, state.step = state.epoch + 1, 0
            require_same_state(task, state, run)
            _validate(task, state, outputs)
            run.event("epoch", epoch=state.epoch, seconds=round(time.monotonic() - begun, 2))
            if processes.any(bool(stop or outputs.reasons)) and state.epoch < task.recipe.epochs:
                run.event("interrupted", epoch=state.epoch, step=0, **_why(outputs))
                raise _stop_error(f"stopped after epoch {state.epoch} of {task.recipe.epochs}", outputs)
    run.event("finished", epochs=state.epoch)
    return run


def _why(outputs: Outputs) -> dict[str, str]:
    return {"reason": outputs.reasons[0]} if outputs.reasons else {}


def _stop_error(position: str, outputs: Outputs) -> Interrupted:
    """Return the exception of a stopped training: Stopped if `on_batch` asked for it, Interrupted after a signal."""
    return Stopped(f"{position}: {outputs.reasons[0]}") if outputs.reasons else Interrupted(position)


def _validate(task: Task, state: TrainState, outputs: Outputs) -> None:
    """Validate in the first process, while the others wait."""
    if task.processes.main:
        row = validate_and_save(task, state, outputs.run, outputs.observers.progress)
        if outputs.observers.on_epoch:
            outputs.observers.on_epoch(row)
    task.processes.barrier()


def _epoch(task: Task, state: TrainState, outputs: Outputs, stop: list[int]) -> None:
    recipe, run, relations = task.recipe, outputs.run, task.train.relations
    objective = task.objective_of(state.epoch)
    name = spec_of(objective).partition(":")[0]
    if state.step == 0 and task.estimates_labels and state.epoch >= recipe.warmup:
        state.labels = estimate_labels(task, state)
        share = float((state.labels > 0.5).float().mean())
        if run.writes:
            with write_atomically(run.labels) as part, open(part, "wb") as stream:
                np.savez(stream, label=state.labels.numpy())
        run.event("labels", epoch=state.epoch + 1, mean=float(state.labels.mean()), above_half=share)
    if state.step == 0:
        torch.manual_seed(1_000_003 * recipe.seed + state.epoch)
    state.model.train()
    total = recipe.steps or task.sampling.count(relations)
    set_rates(state.optimiser, recipe, state.epoch, 0, total)
    rows: list[dict[str, Any]] = []
    for batch in epoch_batches(task.sampling, relations, state.epoch, state.step, recipe.steps):
        set_rates(state.optimiser, recipe, state.epoch, state.step, total)
        factor = loss_factor(recipe, state.epoch, state.step, total)
        step = Step(objective, factor, number=state.epoch * total + state.step, steps=recipe.epochs * total)
        row = train_step(task, state, step, batch, run.last, outputs.monitor, _listener(outputs))
        state.step += 1
        rows.append({"epoch": state.epoch + 1, "step": state.step, "objective": name, **row})
        if outputs.observers.progress:
            outputs.observers.progress(f"epoch {state.epoch + 1}/{recipe.epochs}", state.step, total)
        unfinished, stopping = state.step < total, task.processes.any(bool(stop or outputs.reasons))
        if unfinished and run.writes and (stopping or state.step % outputs.save_every == 0):
            run.append(run.trajectory, rows)
            rows = []
            run.sync()
            snapshot(task, state, {}).save(run.last)
        if unfinished and stopping:
            run.event("interrupted", epoch=state.epoch, step=state.step, **_why(outputs))
            task.processes.barrier()  # all processes wait until the state is saved
            raise _stop_error(f"stopped in epoch {state.epoch + 1} after step {state.step} of {total}", outputs)
    run.append(run.trajectory, rows)


def _listener(outputs: Outputs) -> Callable[[TrainedBatch], None] | None:
    """Return a function that calls `on_batch` and keeps its reason to stop; None without `on_batch`."""
    on_batch = outputs.observers.on_batch
    if on_batch is None or not outputs.run.writes:
        return None

    def listen(batch: TrainedBatch) -> None:
        with deterministic_kernels(False):
            reason = on_batch(batch)
        if reason is not None:
            outputs.reasons.append(reason)

    return listen


def require_same_state(task: Task, state: TrainState, run: Run) -> None:
    """Raise InputError unless all processes of the job have the same parameters, words, data and position."""
    if task.processes.size == 1:
        return
    values = {
        "parameters": checksums(shared_values(task, state)),
        "training data": task.train.fingerprint,
        "vocabulary": stored_tokens(task.tokeniser),
        "place in the run": (state.epoch, state.step),
    }
    require_agreement(task.processes, values, state.epoch, run.path)
