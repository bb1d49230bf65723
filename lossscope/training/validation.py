"""End an epoch: validate, keep the weights, write the state to resume from."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.similarity import Mask, drop_unscored
from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from lossscope.retrieval.evaluate import metric_values
from lossscope.sources.checkpoints.pair_scores import score_split

from .forward import similarity_summary
from .recipe import SelectBy
from .state import TrainState, snapshot
from .task import Task
from .validation_loss import validation_loss


def validate_and_save(task: Task, state: TrainState, run: Run, progress: Progress | None = None) -> dict[str, float]:
    """Evaluate the validation split and write checkpoints and a row of metrics.csv; return the row.

    Only the first process of a job calls it, after each epoch, and before the first.

    Raises InputError if similarities of the validation split are not finite.
    """
    try:
        both = score_split(state.model, task.val_captions, progress)
    except InputError as error:
        raise InputError(f"training diverged in epoch {state.epoch}: {error}") from error
    relations = task.val.relations
    match = torch.from_numpy(relations.is_positive(np.arange(relations.first), np.arange(relations.second)))
    S, mask = drop_unscored(both.i2t, Mask(match, torch.ones_like(match)))
    metrics = metric_values(both, relations, task.encoder.floors_median_rank)
    averages = _averages(run.trajectory, state.epoch)
    averages["val_loss"] = validation_loss(task, state, both.i2t)
    row = {"epoch": state.epoch, **averages, **metrics, **similarity_summary(S, mask)}
    score = selection_score(task.recipe.select_by, metrics, state.epoch, relations.sides)
    is_best = not task.recipe.epochs  # a run of no epochs keeps its start
    is_best |= state.epoch > 0 and (score > state.best or _replaces_warmup(task, state.epoch))
    if is_best and state.epoch:
        state.best = score
    checkpoint = snapshot(task, state, metrics)
    if state.epoch:
        checkpoint.without_training_state().save(run.epoch(state.epoch))
    if is_best:
        checkpoint.without_training_state().save(run.best)
    run.append(run.metrics, [row])
    run.sync()
    checkpoint.save(run.last)
    return row


def _replaces_warmup(task: Task, epoch: int) -> bool:
    """Return whether the epoch is the first after the warm-up, which beats all before, as they trained another loss."""
    recipe = task.recipe
    return task.warmup_objective is not None and not recipe.best_in_warmup and epoch == recipe.warmup + 1


def selection_score(select_by: SelectBy, metrics: Mapping[str, float], epoch: int, sides: Sides = IMAGE_TEXT) -> float:
    """Return the score of an epoch, larger is better; nDCG@10 replaces rsum if sides are not images and captions.

    Args:
        select_by: the recipe's choice.
        metrics: `i2t_R@1`, ... of the validation split.
        epoch: from 1.
        sides: of the data; their directions name the metrics.
    """
    if select_by == "last":
        return float(epoch)
    if select_by == "r1_r5":
        return sum(metrics[f"{label}_R@{k}"] for label in sides.labels for k in (1, 5))
    if select_by == "geometric":
        return math.prod(metrics[f"{sides.label('t2i')}_R@{k}"] for k in (1, 5, 10)) ** (1 / 3)
    return metrics["rsum"] if sides.is_image_text else metrics[f"{sides.labels[0]}_nDCG@10"]


def _averages(trajectory: Path, epoch: int) -> dict[str, float]:
    """Return means over the steps of an epoch, read from the trajectory, so that a resumed epoch counts whole."""
    if not epoch:
        return {"loss": float("nan"), "gradient_norm": float("nan")}
    with open(trajectory, encoding="utf-8", newline="") as file:
        steps = [row for row in csv.DictReader(file) if int(row["epoch"]) == epoch]
    return {name: statistics.fmean(float(row[name]) for row in steps) for name in ("loss", "gradient_norm")}
