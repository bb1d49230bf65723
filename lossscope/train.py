"""The training loop. Batches depend on (seed, epoch) alone, so a run that was killed goes on to the same bits."""

from __future__ import annotations

import contextlib
import csv
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from .checkpoint import Checkpoint, refuse_files, versions
from .errors import InputError, Interrupted
from .evaluate import numbers
from .optimisers import set_rates
from .recipe import Recipe
from .recipe_file import read_recipe, write_recipe
from .registry import spec_of
from .run import Run
from .scoring import seen
from .similarity import Mask, scored
from .step import followed, train_step
from .stopping import stopping
from .task import Listener, Progress, Task, prepared, same_choices
from .training_state import State, fresh, restored, snapshot


def train(
    recipe: Recipe,
    out: Path,
    device: str = "cpu",
    save_every: int = 500,
    progress: Progress | None = None,
    listener: Listener | None = None,
) -> Run:
    """Train from the start into a new folder. listener: called with each row of metrics.csv.

    Raises InputError for specs that do not fit, a folder in use, or divergence; Interrupted after SIGINT, SIGTERM.
    """
    recipe = recipe.canonical()
    run = Run(out)
    run.require_new()
    task = prepared(recipe, run, device, save_every, progress, listener, None)
    state = fresh(task)
    run.start()
    write_recipe(recipe, run.config)
    run.event("started", versions=versions(), device=str(task.device), threads=torch.get_num_threads())
    return _go(task, state)


def resume(
    out: Path,
    epochs: int | None = None,
    device: str = "cpu",
    save_every: int = 500,
    progress: Progress | None = None,
    listener: Listener | None = None,
    trust_code: bool = False,
) -> Run:
    """Go on with a run, to more `epochs` if given.

    Raises InputError when the data or a choice in config.toml are no longer those the run began with.
    """
    run = Run(out)
    if not run.config.is_file():
        raise InputError(f"{out} must be a run folder; it has no config.toml")
    recipe = read_recipe(run.config)
    if epochs is not None:
        recipe = replace(recipe, epochs=epochs)
    for spec in (recipe.data, recipe.encoder, recipe.objective):
        refuse_files(spec, trust_code)
    if not run.last.is_file():
        task = prepared(recipe, run, device, save_every, progress, listener, None)
        state = fresh(task)
        run.cut(0, 0)
        run.event("started again", reason="there was no checkpoint yet")
    else:
        checkpoint = Checkpoint.load(run.last)
        same_choices(recipe, checkpoint, run)
        task = prepared(recipe, run, device, save_every, progress, listener, checkpoint)
        state = restored(task, checkpoint, trust_code)
        begun = checkpoint.epoch > 0 or checkpoint.step > 0
        run.cut(checkpoint.epoch + 1 if begun else 0, checkpoint.step)
        run.event("resumed", epoch=checkpoint.epoch, step=checkpoint.step, versions=versions())
    write_recipe(recipe, run.config)
    return _go(task, state)


def _go(task: Task, state: State) -> Run:
    with deterministic(task.device), stopping() as stop:
        if state.epoch == 0 and state.step == 0:
            _note(task, state, {"loss": float("nan"), "gradient_norm": float("nan")})
        while state.epoch < task.recipe.epochs:
            begun = time.monotonic()
            _epoch(task, state, stop)
            state.epoch, state.step = state.epoch + 1, 0
            _note(task, state, _averages(task, state.epoch))
            task.run.event("epoch", epoch=state.epoch, seconds=round(time.monotonic() - begun, 2))
            if stop and state.epoch < task.recipe.epochs:
                task.run.event("interrupted", epoch=state.epoch, step=0)
                raise Interrupted(f"stopped after epoch {state.epoch} of {task.recipe.epochs}")
    task.run.event("finished", epochs=state.epoch)
    return task.run


def _epoch(task: Task, state: State, stop: list[int]) -> None:
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
        unfinished = state.step < total
        if unfinished and (stop or state.step % task.save_every == 0):
            task.run.append(task.run.trajectory, rows)
            rows = []
            snapshot(task, state, {}).save(task.run.last)
        if unfinished and stop:
            task.run.event("interrupted", epoch=state.epoch, step=state.step)
            raise Interrupted(f"stopped in epoch {state.epoch + 1} after step {state.step} of {total}")
    task.run.append(task.run.trajectory, rows)


def _note(task: Task, state: State, averages: dict[str, float]) -> None:
    """After an epoch (or before the first): evaluate, write the checkpoints, then the state to continue from."""
    try:
        both = seen(state.model, task.val_sentences, task.progress)
    except InputError as error:
        raise InputError(f"training diverged in epoch {state.epoch}: {error}") from error
    match = torch.arange(len(both.i2t))[:, None] == torch.from_numpy(task.val.caption_image)[None, :]
    S, mask = scored(both.i2t, Mask(match, torch.ones_like(match)))
    metrics = numbers(both, task.val.caption_image)
    row = {
        "epoch": state.epoch,
        **averages,
        **metrics,
        **followed(S, mask),
    }
    checkpoint = snapshot(task, state, metrics)
    if state.epoch:
        checkpoint.without_training_state().save(task.run.epoch(state.epoch))
        score = task.recipe.score(metrics, state.epoch)
        if score > state.best:
            state.best = score
            checkpoint.without_training_state().save(task.run.best)
    task.run.append(task.run.metrics, [row])
    snapshot(task, state, metrics).save(task.run.last)
    if task.listener:
        task.listener(row)


def _averages(task: Task, epoch: int) -> dict[str, float]:
    """Means of the epoch's steps, read back from the trajectory so that a resumed epoch counts whole."""
    with open(task.run.trajectory, encoding="utf-8", newline="") as file:
        steps = [row for row in csv.DictReader(file) if int(row["epoch"]) == epoch]
    return {name: statistics.fmean(float(row[name]) for row in steps) for name in ("loss", "gradient_norm")}


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
