"""The end of an epoch: validate, keep the weights, write down the state to continue from."""

from __future__ import annotations

import csv
import statistics

import torch

from lossscope.core.similarity import Mask, drop_unscored
from lossscope.errors import InputError
from lossscope.retrieval.evaluate import metric_values
from lossscope.sources.checkpoints.pair_scores import score_split

from .forward import similarity_summary
from .state import TrainState, snapshot
from .task import Task


def validate_and_save(task: Task, state: TrainState) -> None:
    """After an epoch, or before the first: the first process does it all, the others wait. Raises InputError when
    similarities of the validation split are not finite."""
    if task.processes.main:
        unknown = {"loss": float("nan"), "gradient_norm": float("nan")}
        _note(task, state, _averages(task, state.epoch) if state.epoch else unknown)
    task.processes.barrier()


def _note(task: Task, state: TrainState, averages: dict[str, float]) -> None:
    """Evaluate, write the checkpoints, then the state to continue from."""
    try:
        both = score_split(state.model, task.val_sentences, task.progress)
    except InputError as error:
        raise InputError(f"training diverged in epoch {state.epoch}: {error}") from error
    match = torch.arange(len(both.i2t))[:, None] == torch.from_numpy(task.val.caption_image)[None, :]
    S, mask = drop_unscored(both.i2t, Mask(match, torch.ones_like(match)))
    metrics = metric_values(both, task.val.caption_image)
    row = {
        "epoch": state.epoch,
        **averages,
        **metrics,
        **similarity_summary(S, mask),
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
