"""The training loop. Batches depend on (seed, epoch) alone, so a run that was killed goes on to the same bits."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lossscope.core.distributed import process_group
from lossscope.core.interrupts import stop_on_signals
from lossscope.errors import InputError, Interrupted
from lossscope.io.run_folder import Run
from lossscope.io.versions import versions
from lossscope.registry import require_trusted, spec_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint

from .data_parallel import require_agreement
from .monitor import ProbeSchedule
from .optimisers import set_rates
from .recipe import Recipe
from .recipe_files import read_recipe, write_recipe
from .state import TrainState, new_state, restore_state, snapshot
from .step import train_step
from .task import OnEpoch, Progress, Task, prepare_task, same_choices
from .validation import validate_and_save


def train(
    recipe: Recipe,
    out: Path,
    device: str = "cpu",
    save_every: int = 500,
    progress: Progress | None = None,
    listener: OnEpoch | None = None,
    probing: ProbeSchedule | None = None,
) -> Run:
    """Train from the start into a new folder. listener: called with each row of metrics.csv. probing: what else is
    measured of its batches.

    Raises InputError for specs that do not fit, a folder in use, or divergence; Interrupted after SIGINT, SIGTERM.
    """
    recipe = recipe.canonical()
    run = Run(out, writes=process_group().main)
    run.require_new()
    task = prepare_task(recipe, run, device, save_every, progress, listener, None)
    state = new_state(task)
    require_agreement(task, state)
    task = _watched(task, state, probing)
    run.start()
    if probing is not None and run.writes:
        probing.canonical().write(run.probing)
    told = {"device": str(task.device), "threads": torch.get_num_threads(), "processes": task.processes.size}
    run.event("started", versions=versions(), **told)
    return _go(task, state)


def resume(
    out: Path,
    epochs: int | None = None,
    device: str = "cpu",
    save_every: int = 500,
    progress: Progress | None = None,
    listener: OnEpoch | None = None,
    trust_code: bool = False,
) -> Run:
    """Go on with a run, to more `epochs` if given.

    Raises InputError when the data or a choice in config.toml are no longer those the run began with.
    """
    run = Run(out, writes=process_group().main)
    if not run.config.is_file():
        raise InputError(f"{out} must be a run folder; it has no config.toml")
    recipe = read_recipe(run.config)
    if epochs is not None:
        recipe = replace(recipe, epochs=epochs)
    probing = ProbeSchedule.read(run.probing) if run.probing.is_file() else None
    for spec in (recipe.data, recipe.encoder, recipe.objective, *(probing.probes if probing else ())):
        require_trusted(spec, trust_code)
    if not run.last.is_file():
        task = prepare_task(recipe, run, device, save_every, progress, listener, None)
        state = new_state(task)
        require_agreement(task, state)
        run.cut(0, 0)
        run.event("started again", reason="there was no checkpoint yet")
    else:
        checkpoint = Checkpoint.load(run.last)
        same_choices(recipe, checkpoint, run)
        task = prepare_task(recipe, run, device, save_every, progress, listener, checkpoint)
        state = restore_state(task, checkpoint, trust_code)
        require_agreement(task, state)
        begun = checkpoint.epoch > 0 or checkpoint.step > 0
        run.cut(checkpoint.epoch + 1 if begun else 0, checkpoint.step)
        place = {"epoch": checkpoint.epoch, "step": checkpoint.step, "processes": task.processes.size}
        run.event("resumed", versions=versions(), **place)
    return _go(_watched(task, state, probing), state)


def _watched(task: Task, state: TrainState, probing: ProbeSchedule | None) -> Task:
    """The task with what looks at its batches, in the process that writes. Raises InputError when it can not look."""
    if probing is None or not task.run.writes:
        return task
    objectives = (task.objective(0), task.main)
    return replace(task, watcher=probing.watcher(task.run, objectives, not state.model.pairwise))


def _go(task: Task, state: TrainState) -> Run:
    if task.run.writes:
        write_recipe(task.recipe, task.run.config)
    with deterministic(task.device), stop_on_signals() as stop:
        if state.epoch == 0 and state.step == 0:
            validate_and_save(task, state)
        while state.epoch < task.recipe.epochs:
            begun = time.monotonic()
            _epoch(task, state, stop)
            state.epoch, state.step = state.epoch + 1, 0
            require_agreement(task, state)
            validate_and_save(task, state)
            task.run.event("epoch", epoch=state.epoch, seconds=round(time.monotonic() - begun, 2))
            if task.processes.any(bool(stop)) and state.epoch < task.recipe.epochs:
                task.run.event("interrupted", epoch=state.epoch, step=0)
                raise Interrupted(f"stopped after epoch {state.epoch} of {task.recipe.epochs}")
    task.run.event("finished", epochs=state.epoch)
    return task.run


def _epoch(task: Task, state: TrainState, stop: list[int]) -> None:
    objective = task.objective(state.epoch)
    if state.step == 0:
        torch.manual_seed(1_000_003 * task.recipe.seed + state.epoch)
    state.model.train()
    sampling = task.recipe.batches()
    total = task.recipe.steps_of(sampling.count(task.train.caption_image))
    set_rates(state.optimiser, task.recipe, state.epoch, 0, total)
    rows: list[dict[str, Any]] = []
    for batch in task.recipe.epoch_of(sampling, task.train.caption_image, state.epoch, state.step):
        set_rates(state.optimiser, task.recipe, state.epoch, state.step, total)
        row = train_step(task, state, objective, batch, task.recipe.ramped(state.epoch, state.step, total))
        state.step += 1
        name = spec_of(objective).partition(":")[0]
        rows.append({"epoch": state.epoch + 1, "step": state.step, "objective": name, **row})
        if task.progress:
            task.progress(f"epoch {state.epoch + 1}/{task.recipe.epochs}", state.step, total)
        unfinished, asked = state.step < total, task.processes.any(bool(stop))
        if unfinished and task.run.writes and (asked or state.step % task.save_every == 0):
            task.run.append(task.run.trajectory, rows)
            rows = []
            snapshot(task, state, {}).save(task.run.last)
        if unfinished and asked:
            task.run.event("interrupted", epoch=state.epoch, step=state.step)
            task.processes.barrier()  # none leaves before the state is kept
            raise Interrupted(f"stopped in epoch {state.epoch + 1} after step {state.step} of {total}")
    task.run.append(task.run.trajectory, rows)


@contextlib.contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Deterministic kernels while training; the setting of the process is put back."""
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
