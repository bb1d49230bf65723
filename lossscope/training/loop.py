"""The training loop. Batches depend on (seed, epoch) alone, so a run that was killed resumes to the same bits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lossscope.core.distributed import process_group
from lossscope.core.interrupts import stop_on_signals
from lossscope.core.types import Progress
from lossscope.errors import InputError, Interrupted
from lossscope.io.run_folder import Run
from lossscope.io.versions import versions
from lossscope.registry import require_trusted, spec_of
from lossscope.sources.checkpoints.checkpoint import Checkpoint, stored_tokens

from .batching import epoch_batches
from .components import resolve, warmup_warning
from .data_parallel import checksums, require_agreement
from .kernels import deterministic_kernels
from .monitor import BatchMonitor, ProbeSchedule
from .optimisers import loss_factor, set_rates
from .reading import read_as_authors
from .recipe import Recipe
from .recipe_files import read_recipe, write_recipe
from .state import TrainState, new_state, restore_state, shared_values, snapshot
from .step import train_step
from .task import Task, prepare_task, require_same_choices
from .validation import validate_and_save

OnEpoch = Callable[[dict[str, Any]], None]  # called with each row of metrics.csv


@dataclass(frozen=True)
class _Outputs:
    """Where a training writes, and whom it tells of its progress."""

    run: Run
    save_every: int  # steps between saves inside an epoch
    progress: Progress | None
    on_epoch: OnEpoch | None
    monitor: BatchMonitor | None = None


def train(
    recipe: Recipe,
    out: Path,
    device: str = "cpu",
    save_every: int = 500,
    progress: Progress | None = None,
    on_epoch: OnEpoch | None = None,
    probe_schedule: ProbeSchedule | None = None,
    on_notice: Callable[[str], None] | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Run:
    """Train from the start into a new folder.

    Args:
        recipe: every choice.
        out: folder, new or empty.
        device: cpu, cuda or cuda:INDEX.
        save_every: steps between saves inside an epoch.
        progress: called with (label, done, of).
        on_epoch: called with each row of metrics.csv.
        probe_schedule: which probes run on which batches.
        on_notice: called with what the user should know before it begins.
        on_warning: called with what may make the run another than the user means.

    Raises:
        InputError: specs that do not fit, a folder in use, or divergence.
        Interrupted: after SIGINT or SIGTERM; the run can be resumed.
    """
    recipe, notices = read_as_authors(recipe)
    components = resolve(recipe)
    for text in notices:
        if on_notice is not None:
            on_notice(text)
    warning = warmup_warning(components.recipe)
    if warning is not None and on_warning is not None:
        on_warning(warning)
    run = Run(out, writes=process_group().main)
    run.require_new()
    task = prepare_task(components, run.path, device, progress=progress)
    state = new_state(task)
    _require_agreement(task, state, run)
    outputs = _outputs(task, state, _Outputs(run, save_every, progress, on_epoch), probe_schedule)
    run.start()
    if probe_schedule is not None and run.writes:
        probe_schedule.canonical().write(run.probe_schedule)
    place = {"device": str(task.device), "threads": torch.get_num_threads(), "processes": task.processes.size}
    run.event("started", versions=versions(), notices=[*notices, *([warning] if warning else [])], **place)
    return _run(task, state, outputs)


def resume(
    out: Path,
    epochs: int | None = None,
    device: str = "cpu",
    save_every: int = 500,
    progress: Progress | None = None,
    on_epoch: OnEpoch | None = None,
    trust_code: bool = False,
) -> Run:
    """Resume a run, to more epochs if given.

    Args:
        out: folder of the run.
        epochs: of the whole run; None: those of its recipe.
        device: cpu, cuda or cuda:INDEX.
        save_every: steps between saves inside an epoch.
        progress: called with (label, done, of).
        on_epoch: called with each row of metrics.csv.
        trust_code: import Python files that the recipe names.

    Raises:
        InputError: the data or a choice in config.toml are no longer those the run began with.
        Interrupted: after SIGINT or SIGTERM; the run can be resumed.
    """
    run = Run(out, writes=process_group().main)
    if not run.config.is_file():
        raise InputError(f"{out} must be a run folder; it has no config.toml")
    recipe = read_recipe(run.config)
    if epochs is not None:
        recipe = replace(recipe, epochs=epochs)
    schedule = ProbeSchedule.read(run.probe_schedule) if run.probe_schedule.is_file() else None
    for spec in (recipe.data, recipe.encoder, recipe.objective, *(schedule.probes if schedule else ())):
        require_trusted(spec, trust_code)
    checkpoint = Checkpoint.load(run.last) if run.last.is_file() else None
    if checkpoint is not None:
        require_same_choices(recipe, checkpoint, run.path, run.config)
    components = replace(resolve(recipe), recipe=recipe)  # as it was stated, also where classes have new fields
    task = prepare_task(components, run.path, device, checkpoint, progress)
    state = restore_state(task, checkpoint, run.last, trust_code) if checkpoint else new_state(task)
    _require_agreement(task, state, run)
    if checkpoint is None:
        run.truncate(0, 0)
        run.event("started again", reason="there was no checkpoint yet")
    else:
        begun = checkpoint.epoch > 0 or checkpoint.step > 0
        run.truncate(checkpoint.epoch + 1 if begun else 0, checkpoint.step)
        place = {"epoch": checkpoint.epoch, "step": checkpoint.step, "processes": task.processes.size}
        run.event("resumed", versions=versions(), **place)
    return _run(task, state, _outputs(task, state, _Outputs(run, save_every, progress, on_epoch), schedule))


def _outputs(task: Task, state: TrainState, outputs: _Outputs, schedule: ProbeSchedule | None) -> _Outputs:
    """The outputs with a monitor of batches, in the process that writes. Raises InputError when it cannot run."""
    if schedule is None or not outputs.run.writes:
        return outputs
    objectives = (task.objective_of(0), task.objective)
    return replace(outputs, monitor=schedule.monitor(outputs.run, objectives, not state.model.pairwise))


def _run(task: Task, state: TrainState, outputs: _Outputs) -> Run:
    """Train the epochs that are left."""
    run, processes = outputs.run, task.processes
    if run.writes:
        write_recipe(task.recipe, run.config)
    with deterministic_kernels(True), stop_on_signals() as stop:
        if state.epoch == 0 and state.step == 0:
            _validate(task, state, outputs)
        while state.epoch < task.recipe.epochs:
            begun = time.monotonic()
            _epoch(task, state, outputs, stop)
            state.epoch, state.step = state.epoch + 1, 0
            _require_agreement(task, state, run)
            _validate(task, state, outputs)
            run.event("epoch", epoch=state.epoch, seconds=round(time.monotonic() - begun, 2))
            if processes.any(bool(stop)) and state.epoch < task.recipe.epochs:
                run.event("interrupted", epoch=state.epoch, step=0)
                raise Interrupted(f"stopped after epoch {state.epoch} of {task.recipe.epochs}")
    run.event("finished", epochs=state.epoch)
    return run


def _validate(task: Task, state: TrainState, outputs: _Outputs) -> None:
    """Validate in the first process, while the others wait."""
    if task.processes.main:
        row = validate_and_save(task, state, outputs.run, outputs.progress)
        if outputs.on_epoch:
            outputs.on_epoch(row)
    task.processes.barrier()


def _epoch(task: Task, state: TrainState, outputs: _Outputs, stop: list[int]) -> None:
    recipe, run, owner = task.recipe, outputs.run, task.train.caption_image
    objective = task.objective_of(state.epoch)
    name = spec_of(objective).partition(":")[0]
    if state.step == 0:
        torch.manual_seed(1_000_003 * recipe.seed + state.epoch)
    state.model.train()
    total = recipe.steps or task.sampling.count(owner)
    set_rates(state.optimiser, recipe, state.epoch, 0, total)
    rows: list[dict[str, Any]] = []
    for batch in epoch_batches(task.sampling, owner, state.epoch, state.step, recipe.steps):
        set_rates(state.optimiser, recipe, state.epoch, state.step, total)
        factor = loss_factor(recipe, state.epoch, state.step, total)
        row = train_step(task, state, objective, batch, run.last, factor, outputs.monitor)
        state.step += 1
        rows.append({"epoch": state.epoch + 1, "step": state.step, "objective": name, **row})
        if outputs.progress:
            outputs.progress(f"epoch {state.epoch + 1}/{recipe.epochs}", state.step, total)
        unfinished, stopping = state.step < total, task.processes.any(bool(stop))
        if unfinished and run.writes and (stopping or state.step % outputs.save_every == 0):
            run.append(run.trajectory, rows)
            rows = []
            snapshot(task, state, {}).save(run.last)
        if unfinished and stopping:
            run.event("interrupted", epoch=state.epoch, step=state.step)
            task.processes.barrier()  # none leaves before the state is kept
            raise Interrupted(f"stopped in epoch {state.epoch + 1} after step {state.step} of {total}")
    run.append(run.trajectory, rows)


def _require_agreement(task: Task, state: TrainState, run: Run) -> None:
    """Raise InputError unless all processes of the job have the same parameters, words, data and place."""
    if task.processes.size == 1:
        return
    values = {
        "parameters": checksums(shared_values(task, state)),
        "training data": task.train.fingerprint,
        "vocabulary": stored_tokens(task.tokeniser),
        "place in the run": (state.epoch, state.step),
    }
    require_agreement(task.processes, values, state.epoch, run.path)
