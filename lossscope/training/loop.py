"""Begin or resume a training. Batches depend on (seed, epoch) alone, so a resumed run has the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from lossscope.core.distributed import process_group
from lossscope.declarations import published_caveat
from lossscope.errors import InputError
from lossscope.io.remembered_trust import remember_trust, remembered_trust
from lossscope.io.run_folder import Run
from lossscope.io.trusted_code import require_trusted, trust
from lossscope.io.versions import versions
from lossscope.sources.checkpoints.checkpoint import Checkpoint

from .components import Components, resolve, warmup_warning
from .epochs import Outputs, require_same_state, train_epochs
from .monitor import ProbeSchedule
from .observers import Observers
from .reading import read_as_authors
from .recipe import Recipe
from .recipe_files import read_recipe, write_recipe
from .state import TrainState, new_state, restore_state
from .task import Task, prepare_task, require_same_choices
from .validation_loss import why_no_validation_loss


def train(
    recipe: Recipe,
    out: Path,
    device: str = "cpu",
    save_every: int = 500,
    probe_schedule: ProbeSchedule | None = None,
    observers: Observers = Observers(),  # noqa: B008 - never changed
) -> Run:
    """Train from the start into a new folder.

    A Python file that the recipe names is imported only if it is trusted (lossscope.io.trusted_code). The run remembers
    the trust, so that it can resume.

    Args:
        recipe: all choices.
        out: folder, new or empty.
        device: cpu, cuda or cuda:INDEX.
        save_every: steps between saves inside an epoch.
        probe_schedule: which probes run on which batches.
        observers: callbacks.

    Raises:
        InputError: specs that do not fit, a folder in use, or divergence.
        Interrupted: after SIGINT or SIGTERM; the run can be resumed.
        Stopped: `observers.on_batch` asked for it; the run can be resumed.
    """
    recipe, notices = read_as_authors(recipe)
    components = resolve(recipe)
    for text in notices:
        observers.notice(text)
    warning = warmup_warning(components.recipe)
    observers.warn(warning)
    outputs = Outputs(Run(out, process_group().main), save_every, observers)
    with outputs.run.lock():
        texts = [*notices, *([warning] if warning else [])]
        return _start(recipe, components, device, outputs, probe_schedule, texts)


def _start(
    recipe: Recipe,
    components: Components,
    device: str,
    outputs: Outputs,
    schedule: ProbeSchedule | None,
    notices: list[str],
) -> Run:
    """Train from the start, in a locked folder."""
    run = outputs.run
    run.require_new()
    task = prepare_task(components, run.path, device, progress=outputs.observers.progress)
    if task.train.used:
        notices = [f"training on {task.train.used}; validating on {task.val.used}", *notices]
        outputs.observers.notice(notices[0])
    of_data = list(dict.fromkeys((*task.train.notices, *task.val.notices)))
    state = new_state(task)
    reason = why_no_validation_loss(task, state.model)
    caveat = published_caveat(task.recipe.objective)
    of_data += [caveat] if caveat else []
    of_data += [f"val_loss of metrics.csv stays empty: {reason}"] if reason else []
    for text in of_data:
        outputs.observers.notice(text)
    require_same_state(task, state, run)
    outputs = _outputs(task, state, outputs, schedule)
    run.start()
    if run.writes:  # config.toml last: a folder that has it can be resumed, a folder without it is new
        if schedule is not None:
            schedule.canonical().write(run.probe_schedule)
        write_recipe(task.recipe, run.config)
    outputs.observers.warn(_remember_trust(run, recipe, schedule))
    setting = {"device": str(task.device), "threads": torch.get_num_threads(), "processes": task.processes.size}
    run.event("started", versions=versions(), notices=[*notices, *of_data], **setting)
    return train_epochs(task, state, outputs)


def resume(
    out: Path,
    epochs: int | None = None,
    device: str = "cpu",
    save_every: int = 500,
    trust_code: bool = False,
    observers: Observers = Observers(),  # noqa: B008 - never changed
) -> Run:
    """Resume a run, to more epochs if given.

    Args:
        out: folder of the run.
        epochs: of the whole run; None: those of its recipe.
        device: cpu, cuda or cuda:INDEX.
        save_every: steps between saves inside an epoch.
        trust_code: import Python files that the recipe names.
        observers: callbacks.

    Raises:
        InputError: the data or a choice in config.toml changed since the run began.
        Interrupted: after SIGINT or SIGTERM; the run can be resumed.
        Stopped: `observers.on_batch` asked for it; the run can be resumed.
    """
    run = Run(out, process_group().main)
    if not run.config.is_file():
        raise InputError(f"{out} must be a run folder; it has no config.toml")
    with trust(any_file=trust_code, more=remembered_trust(out)), run.lock():
        return _resume(epochs, device, Outputs(run, save_every, observers))


def _resume(epochs: int | None, device: str, outputs: Outputs) -> Run:
    """Resume a run, in a locked folder."""
    run = outputs.run
    recipe = read_recipe(run.config)
    if epochs is not None:
        recipe = replace(recipe, epochs=epochs)
    schedule = ProbeSchedule.read(run.probe_schedule) if run.probe_schedule.is_file() else None
    require_trusted(recipe.specs, run.config)
    require_trusted(schedule.probes if schedule else (), run.probe_schedule)
    checkpoint = Checkpoint.load(run.last) if run.last.is_file() else None
    if checkpoint is not None:
        require_same_choices(recipe, checkpoint, run.path, run.config)
    _remember_trust(run, recipe, schedule)
    components = replace(resolve(recipe), recipe=recipe)  # as config.toml states it, also if classes have new fields
    task = prepare_task(components, run.path, device, checkpoint, outputs.observers.progress)
    state = restore_state(task, checkpoint, run.last) if checkpoint else new_state(task)
    require_same_state(task, state, run)
    if checkpoint is None:
        run.truncate(0, 0)
        run.event("started again", reason="there was no checkpoint yet")
    else:
        begun = checkpoint.epoch > 0 or checkpoint.step > 0
        run.truncate(checkpoint.epoch + 1 if begun else 0, checkpoint.step)
        if begun:  # otherwise the run writes all rows again
            _require_rows(task, state, run, schedule)
        position = {"epoch": checkpoint.epoch, "step": checkpoint.step, "processes": task.processes.size}
        run.event("resumed", versions=versions(), **position)
    if run.writes:
        write_recipe(task.recipe, run.config)
    return train_epochs(task, state, _outputs(task, state, outputs, schedule))


def _remember_trust(run: Run, recipe: Recipe, schedule: ProbeSchedule | None) -> str | None:
    """Remember that the Python files of a run are trusted; return the reason if that failed, else None."""
    return remember_trust(run.path, (*recipe.specs, *(schedule.probes if schedule else ()))) if run.writes else None


def _outputs(task: Task, state: TrainState, outputs: Outputs, schedule: ProbeSchedule | None) -> Outputs:
    """Return the outputs with a monitor of batches, in the process that writes. Raises InputError if it cannot run."""
    if schedule is None or not outputs.run.writes:
        return outputs
    objectives = (task.objective_of(0), task.objective)
    sides = task.train.relations.sides
    return replace(outputs, monitor=schedule.monitor(outputs.run, objectives, not state.model.pairwise, sides))


def _require_rows(task: Task, state: TrainState, run: Run, schedule: ProbeSchedule | None) -> None:
    """Raise InputError if rows that the checkpoint needs are lost: an epoch's loss is a mean over its rows."""
    if run.writes:
        steps = task.recipe.steps or task.sampling.count(task.train.relations)
        run.require_rows(state.epoch, state.step, steps, schedule.every if schedule else None)
