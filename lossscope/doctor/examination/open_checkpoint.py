"""What there is to examine of a checkpoint or a run that lossscope trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.base import Split
from lossscope.io.run_folder import Run, list_checkpoints
from lossscope.io.trusted_code import is_trusted
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.sources.checkpoints.captions import CaptionBatcher, with_tokens
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.reading import complete_data
from lossscope.training.recipe_files import read_recipe

from ..logs.base import TrainingLog
from ..logs.read_log import read_log
from ..parts.generalisation import Generalisation
from ..parts.items import Items
from ..parts.learnt_scale import LearntScale
from ..parts.matrix import Matrix
from ..parts.parameters import Parameters
from ..parts.patient import Patient
from ..parts.splits import Splits
from ..parts.train_mode import TrainMode
from ..parts.truth import Truth
from ..parts.vectors import Vectors
from ..types import NotChecked
from .held_out import mean_recall, pairs_of_both, shared_by_embedding
from .options import Options
from .train_mode import recall_in_modes

_BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_BATCHES = 4
_SCALES = 10  # epochs of a run whose learnt scale is read
_MOST_PAIRS = 10**8  # of items of both sides whose truth is computed
_HELD_OUT = ("val", "test")
OfSplit = Callable[[SplitEmbeddings, Options, Patient], Patient]


def add_checkpoint(patient: Patient, path: Path, options: Options, of_split: OfSplit) -> Patient:
    """Add the parts of a checkpoint, or of a run folder with its log and all its checkpoints.

    Args:
        patient: new.
        path: file or run folder.
        options: of the user.
        of_split: adds the embeddings of a split.

    Raises:
        InputError: a damaged file, or data that cannot be read.
    """
    is_run = path.is_dir()
    file = _file_of_run(path) if is_run else path
    if is_run:
        _add_run(patient, path)
    if file is None:
        reason = "the run has no checkpoint yet"
        kinds: tuple[type[Any], ...] = (Vectors, Items, Matrix, Parameters, Splits, Generalisation, TrainMode, Truth)
        patient.missing = {**patient.missing, **dict.fromkeys(kinds, reason)}
        return patient
    checkpoint = Checkpoint.load(file)
    patient.epoch, patient.recipe = checkpoint.epoch, checkpoint.training
    patient.objective_spec = checkpoint.objective or patient.objective_spec
    patient.given[Parameters] = _parameters(file, checkpoint, path)
    if patient.part(Parameters).not_finite:
        reason = "the weights of the model are not finite"
        kinds = (Vectors, Items, Matrix, Splits, Generalisation, TrainMode, Truth)
        patient.missing = {**patient.missing, **dict.fromkeys(kinds, reason)}
        return patient
    train = load(file, **options.request())
    _add_scale(patient, checkpoint, path)
    size, pairs = checkpoint.training.get("batch_size"), len(train.relations.positives)
    if isinstance(size, int) and options.split == "train" and options.data is None:
        patient.steps = checkpoint.epoch * max(pairs // size, 1) + checkpoint.step
    patient.is_held_out = options.split != "train"
    other = None if patient.is_held_out else _held_out(checkpoint, options)
    if patient.is_held_out:
        reason = f"its {options.split} data are examined, not those that it was trained on"
        patient.missing = {**patient.missing, Splits: f"{reason}; --against names these", Generalisation: reason}
    if other is not None and not options.against:
        held_out = cache(lambda: load(file, **options.request(other)))
        patient.given[Splits] = lambda: _splits(train, held_out(), options)
        patient.given[Generalisation] = lambda: _generalisation(train, held_out(), path, options)
    read_split = cache(lambda: _split(checkpoint, options))
    patient.given[TrainMode] = lambda: _train_mode(checkpoint, read_split, options, patient.batch_size)
    of_split(replace(train, name=patient.name), options, patient)
    if options.audit is None:
        patient.given[Truth] = lambda: _truth(read_split(), patient)
    patient.missing = {kind: why for kind, why in patient.missing.items() if kind not in patient.given}
    return patient


def _file_of_run(path: Path) -> Path | None:
    run = Run(path)
    candidates = [*(file for _, file in list_checkpoints(path)[-1:]), run.best, run.last]
    return next((file for file in candidates if file.is_file()), None)


def _add_run(patient: Patient, path: Path) -> None:
    run = Run(path)
    recipe = read_recipe(run.config)
    patient.run = path
    patient.stated_batch_size, patient.objective_spec = recipe.batch_size, recipe.objective or None
    if run.trajectory.is_file():
        patient.given[TrainingLog] = lambda: read_log(path)


def _parameters(file: Path, checkpoint: Checkpoint, path: Path) -> Parameters:
    """Return the weights of a checkpoint, and of a run those of its first epoch beside them."""
    every = list_checkpoints(path)
    if len(every) < 2 or every[-1][1] != file:  # a checkpoint alone, or a run of one epoch
        return Parameters(file, checkpoint.weights)
    (first, before), *_, (last, _) = every
    return Parameters(file, checkpoint.weights, Checkpoint.load(before).weights, (first, last))


def _add_scale(patient: Patient, checkpoint: Checkpoint, path: Path) -> None:
    """Add the learnt scale of a checkpoint, or of those of a run, after that at the start, which the recipe states."""
    start = checkpoint.training.get("objective")
    if not start or not is_trusted(start) or not build("objectives", start).learnable:
        return
    patient.given[LearntScale] = lambda: _learnt_scale(path, start, checkpoint)


def _learnt_scale(path: Path, start: str, checkpoint: Checkpoint) -> LearntScale:
    """Return scale and bias at the start and after epochs; of a long run after some of them, evenly spread."""
    earlier = [file for epoch, file in list_checkpoints(path) if epoch < checkpoint.epoch]
    specs = [start, *(Checkpoint.load(file).objective for file in earlier[:: max(len(earlier) // _SCALES, 1)])]
    learnt = [build("objectives", spec).learnable for spec in (*specs, checkpoint.objective) if is_trusted(spec)]
    scales = np.array([one["scale"] for one in learnt if "scale" in one])
    return LearntScale(scales, np.array([one["bias"] for one in learnt if "bias" in one]), True)


def _held_out(checkpoint: Checkpoint, options: Options) -> str | None:
    """Return the name of a split that training did not see."""
    spec = options.data or checkpoint.data
    if not spec or not is_trusted(spec):
        return None
    splits = build("datasets", complete_data(spec, checkpoint.reading)[0]).splits()
    return next((name for name in _HELD_OUT if name in splits), None)


def _split(checkpoint: Checkpoint, options: Options) -> Split:
    """Return the split of the data set itself, which the embeddings do not hold."""
    data, _ = complete_data(options.data or checkpoint.data, checkpoint.reading)
    split: Split = build("datasets", data).split(options.split)
    return split


def _splits(train: SplitEmbeddings, held_out: SplitEmbeddings, options: Options) -> Splits:
    shared = shared_by_embedding(train, held_out, options.split)
    if not shared:
        raise NotChecked("a split has too few embeddings to compare")
    return Splits(tuple(shared))


def _generalisation(train: SplitEmbeddings, held_out: SplitEmbeddings, path: Path, options: Options) -> Generalisation:
    pairs = pairs_of_both(train, held_out)
    recalls = mean_recall(train, pairs), mean_recall(held_out, pairs)
    earlier = _earlier_checkpoint(path)
    if earlier is None or recalls[0] < 2 * recalls[1]:
        return Generalisation(pairs, *recalls)
    before = [mean_recall(load(earlier, **options.request(one)), pairs) for one in ("train", held_out.split)]
    return Generalisation(pairs, *recalls, before[0] - before[1], before[1])


def _earlier_checkpoint(path: Path) -> Path | None:
    """Return the checkpoint of a third of the epochs of a run folder."""
    every = list_checkpoints(path)
    return every[(len(every) - 1) // 3][1] if len(every) > 2 else None


def _train_mode(checkpoint: Checkpoint, read_split: Callable[[], Split], options: Options, size: int) -> TrainMode:
    """Return recall of a few batches in both modes of batch norm."""
    model = checkpoint.model(options.trust_code)
    layers = [layer for layer in model.modules() if isinstance(layer, _BATCH_NORM)]
    if not layers:
        raise NotChecked("the model has no batch norm")
    if not model.is_dot_product:
        raise NotChecked("the model scores pairs and has no embeddings")
    split = read_split()
    captions = CaptionBatcher(with_tokens(split, checkpoint.words()), checkpoint.words())
    return recall_in_modes(model, captions, layers, min(size, len(split.relations.positives)), _BATCHES)


def _truth(split: Any, patient: Patient) -> Truth:
    if not hasattr(split, "truth"):
        raise NotChecked("its data do not know the truth")
    relations, rows = split.relations, patient.part(Items).rows
    if relations.first * relations.second > _MOST_PAIRS:
        raise NotChecked("there are too many items to compare all with all")
    truth = split.truth()
    truth = truth.T if relations.sides.is_image_text else truth
    return Truth.exact(truth[np.ix_(rows.i2t, rows.t2i)])
