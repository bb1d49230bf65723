"""Open what the user names: dumps, models, runs, text data and logs.

This file decides what a source has: its embeddings as stored, its trained model, its rows of text, its log. All other
parts follow from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lossscope.core.choices import WHOLE
from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.rows.row_files import READERS
from lossscope.errors import InputError
from lossscope.io.locations import is_url, location_exists, suffix_of
from lossscope.io.number_tables import is_number_table
from lossscope.io.reading import show_path
from lossscope.io.run_folder import Run, list_checkpoints
from lossscope.io.shipped import find_shipped
from lossscope.registry import names
from lossscope.sources.base import find_source, from_arrays, read_source
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.recipe_files import read_recipe

from ..logs.base import TrainingLog
from ..logs.read_log import read_log
from ..parts.parameters import Parameters
from ..parts.patient import Patient
from ..parts.texts import Texts
from ..parts.trained_model import TrainedModel
from .options import Options
from .rows_beside import add_rows


def open_patient(target: Any, options: Options, log: Path | str | None = None) -> Patient:
    """Return the patient of a source.

    Args:
        target: path or name of a source, a data file or its spec; embeddings, or arrays by name; None: the log alone.
        options: of the user.
        log: of the training that made it.

    Raises:
        InputError: the source does not exist, or cannot be read.
    """
    patient = _open(target, options)
    if options.objective is not None:
        patient.objective_spec = options.objective
    if options.batch_size is not None:
        patient.stated_batch_size = options.batch_size
    if log is not None:
        patient.given[TrainingLog] = lambda: read_log(Path(log), dict(options.columns))
        if target is None:
            patient.name = show_path(log)
            patient.part(TrainingLog)  # an unreadable log is an error at once
    return patient


def _open(target: Any, options: Options) -> Patient:
    if target is None:
        return Patient("log", options, missing=dict.fromkeys((SplitEmbeddings, TrainedModel, Texts), "it is a log"))
    if isinstance(target, str | Path):
        return _open_path(str(target), options)
    if isinstance(target, SplitEmbeddings):
        return of_split(target, options)
    if isinstance(target, Mapping):
        arrays, sides = _of_captions(target) if "captions" in target else (dict(target), None)
        return of_split(from_arrays(arrays, options.source.sides or sides, raw=True), options)
    if isinstance(target, tuple | list) and len(target) == 2:
        arrays = dict(zip(("queries", "documents"), target, strict=True))
        return of_split(from_arrays(arrays, options.source.sides or "image/caption", raw=True), options)
    got = type(target).__name__
    raise InputError(f"source must be a path, loaded embeddings, two arrays, or arrays by name; got {got}")


def _of_captions(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return arrays of images and captions as queries and documents, and the names of the sides."""
    by_name = dict(arrays)
    owner = by_name.pop("caption_image", None)
    if owner is not None and "positives" not in by_name:
        rows = np.asarray(owner)
        by_name["positives"] = np.stack([rows, np.arange(len(rows))], 1)
    names = {"images": "queries", "captions": "documents"}
    return {names.get(name, name): array for name, array in by_name.items()}, "image/caption"


def _open_path(target: str, options: Options) -> Patient:
    path = find_shipped("checkpoints", Path(target).expanduser())
    if is_url(target) or not path.exists():
        return _open_texts(target, options)
    if path.is_dir() and (path / "config.toml").is_file() and (path / "checkpoints").is_dir():
        return _open_run(target, path, options)
    if path.is_file() and suffix_of(target) in READERS and not is_number_table(path):
        return _open_texts(target, options)
    try:
        source = find_source(path)
    except InputError as error:
        try:
            return _open_texts(target, options)
        except InputError as of_texts:
            raise InputError(f"{error}; rows of text, for which {of_texts}") from None
    if type(source).__name__ == "Own":
        return _add_model(Patient(target, options), path, path)
    patient = of_split(read_source(path, options.request()), options)
    add_rows(patient, options.source.data)
    return patient


def _open_run(target: str, path: Path, options: Options) -> Patient:
    """Return the patient of a run folder, with its log and all its checkpoints."""
    run, patient = Run(path), Patient(target, options, run=path)
    recipe = read_recipe(run.config)
    patient.stated_batch_size, patient.objective_spec = recipe.batch_size, recipe.objective or None
    if run.trajectory.is_file():
        patient.given[TrainingLog] = lambda: read_log(path)
    candidates = [*(file for _, file in list_checkpoints(path)[-1:]), run.best, run.last]
    file = next((file for file in candidates if file.is_file()), None)
    if file is not None:
        return _add_model(patient, file, path)
    patient.missing |= dict.fromkeys((SplitEmbeddings, TrainedModel), "the run has no checkpoint yet")
    return patient


def _add_model(patient: Patient, file: Path, path: Path) -> Patient:
    """Add a checkpoint of lossscope and its embeddings.

    Args:
        patient: new, or that of a run.
        file: of the checkpoint.
        path: the file or run folder that the user named.

    Raises:
        InputError: a damaged file, or data that cannot be read.
    """
    checkpoint, options = Checkpoint.load(file), patient.options
    patient.epoch, patient.recipe = checkpoint.epoch, checkpoint.training
    patient.objective_spec = checkpoint.objective or patient.objective_spec
    patient.given[TrainedModel] = TrainedModel(checkpoint, file, path, options)
    if patient.part(Parameters).not_finite:
        patient.missing[SplitEmbeddings] = "the weights of the model are not finite"
        return patient
    split = read_source(file, options.request())
    size, pairs = checkpoint.training.get("batch_size"), len(split.relations.positives)
    if isinstance(size, int) and split.split == "train" and options.source.data is None:
        patient.steps = checkpoint.epoch * max(pairs // size, 1) + checkpoint.step
    patient.is_held_out = split.split not in ("train", WHOLE)
    of_split(replace(split, name=patient.name), options, patient)
    add_rows(patient, options.source.data or checkpoint.data or None)
    return patient


def of_split(split: SplitEmbeddings, options: Options, patient: Patient | None = None) -> Patient:
    """Return a patient of the stored embeddings or similarities of a split.

    Args:
        split: read with `raw`.
        options: of the user.
        patient: the patient to add them to; None: a new patient.
    """
    patient = patient or Patient(split.name, options)
    patient.given[SplitEmbeddings] = split
    patient.sides, patient.recipe = split.sides, patient.recipe or split.recipe
    patient.objective_spec = split.objective or patient.objective_spec
    patient.stated_batch_size = patient.stated_batch_size or split.recipe.get("batch_size")
    patient.notices += [*split.warnings, *split.notices]
    return patient


def _open_texts(target: str, options: Options) -> Patient:
    """Return a patient of rows of text, without a model."""
    is_named = ":" in target or target.replace("-", "_").lower() in names("datasets")
    if not (location_exists(target) or is_url(target) or is_named):
        raise InputError(
            f"source must be a checkpoint, run folder, dump, data file or data set; there is nothing at {target!r} "
            f"(looked in {Path.cwd()})"
        )
    sources = lint_sources(target)
    known = {f"{name} of {other}": source for other in options.against for name, source in lint_sources(other).items()}
    texts = Texts(target, lint(sources, known, progress=options.source.progress))
    reason = "it has text rows and no embeddings"
    missing: dict[type, str] = dict.fromkeys((SplitEmbeddings, TrainedModel), reason)
    return Patient(target, options, given={Texts: texts}, missing=missing, notices=list(texts.report.notes))
