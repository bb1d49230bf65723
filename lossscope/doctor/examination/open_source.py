"""From what the user names to what there is to examine: dumps, models, runs, text data and logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.known_pairs import read_known_pairs
from lossscope.core.pair import Pair
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.errors import InputError
from lossscope.io.locations import is_url, location_exists
from lossscope.io.reading import show_path
from lossscope.io.shipped import find_shipped
from lossscope.registry import names
from lossscope.sources.base import find_source, from_arrays, load

from ..logs.base import TrainingLog
from ..logs.read_log import read_log
from ..parts.generalisation import Generalisation
from ..parts.items import Items, sample_rows, subset
from ..parts.matrix import Matrix
from ..parts.parameters import Parameters
from ..parts.patient import Patient
from ..parts.splits import Splits
from ..parts.texts import Texts
from ..parts.train_mode import TrainMode
from ..parts.truth import Truth
from ..parts.vectors import Vectors
from .held_out import shared_with
from .open_checkpoint import add_checkpoint
from .options import Options

_NO_LOG = "it has no log; --log names one"
_NO_TRUTH = "its data do not know the truth; --audit names an audit"
_NO_TEXTS = "it has no rows of text"
_OF_ITEMS: tuple[type[Any], ...] = (Vectors, Items, Matrix, Parameters, Splits, Generalisation, TrainMode, Truth)


def open_patient(target: Any, options: Options, log: Path | str | None = None) -> Patient:
    """Return what there is to examine of a source.

    Args:
        target: path or name of a source, a data file or its spec; embeddings, or arrays by name; None: the log alone.
        options: of the user.
        log: of the training that made it.

    Raises:
        InputError: nothing is there, or what is there cannot be read.
    """
    patient = _open(target, options)
    if options.objective is not None:
        patient.objective_spec = options.objective
    if options.batch_size is not None:
        patient.stated_batch_size = options.batch_size
    if log is not None:
        patient.given[TrainingLog] = lambda: read_log(Path(log), dict(options.columns))
        patient.missing = {kind: why for kind, why in patient.missing.items() if kind is not TrainingLog}
        if target is None:
            patient.name = show_path(log)
            patient.part(TrainingLog)  # so that a log that cannot be read is an error
    return patient


def _open(target: Any, options: Options) -> Patient:
    if target is None:
        return Patient("log", missing=dict.fromkeys(_OF_ITEMS, "it is a log") | {Texts: "it is a log"})
    if isinstance(target, str | Path):
        return _open_path(str(target), options)
    if isinstance(target, SplitEmbeddings):
        return of_split(target, options)
    if isinstance(target, Mapping):
        arrays, sides = _of_captions(target) if "captions" in target else (dict(target), None)
        return of_split(from_arrays(arrays, options.sides or sides, raw=True), options)
    if isinstance(target, tuple | list) and len(target) == 2:
        arrays = dict(zip(("queries", "documents"), target, strict=True))
        return of_split(from_arrays(arrays, options.sides or "image/caption", raw=True), options)
    got = type(target).__name__
    raise InputError(f"source must be a path, loaded embeddings, two arrays, or arrays by name; got {got}")


def _of_captions(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return arrays of images and captions as those of any two sides, and what these are called."""
    own = dict(arrays)
    owner = own.pop("caption_image", None)
    if owner is not None and "positives" not in own:
        rows = np.asarray(owner)
        own["positives"] = np.stack([rows, np.arange(len(rows))], 1)
    names = {"images": "queries", "captions": "documents"}
    return {names.get(name, name): array for name, array in own.items()}, "image/caption"


def _open_path(target: str, options: Options) -> Patient:
    path = find_shipped("checkpoints", Path(target).expanduser())
    if is_url(target) or not path.exists():
        return _open_texts(target, options)
    if path.is_dir() and (path / "config.toml").is_file() and (path / "checkpoints").is_dir():
        return add_checkpoint(_new(str(target)), path, options, of_split)
    if path.is_file() and path.suffix in (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".gz"):
        return _open_texts(target, options)
    try:
        source = find_source(path)
    except InputError as error:
        try:
            return _open_texts(target, options)
        except InputError:
            raise error from None
    if type(source).__name__ == "Own":
        return add_checkpoint(_new(str(target)), path, options, of_split)
    return of_split(load(path, **options.request()), options)


def _new(name: str) -> Patient:
    return Patient(name, missing={TrainingLog: _NO_LOG, Texts: _NO_TEXTS, Truth: _NO_TRUTH})


def of_split(split: SplitEmbeddings, options: Options, patient: Patient | None = None) -> Patient:
    """Return a patient of the embeddings or similarities of a split, as they are stored.

    Args:
        split: read with `raw`.
        options: of the user.
        patient: that they are added to; None: a new one.
    """
    patient = patient or _new(split.name)
    patient.sides, patient.recipe = split.sides, patient.recipe or split.recipe
    patient.objective_spec = split.objective or patient.objective_spec
    patient.stated_batch_size = patient.stated_batch_size or split.recipe.get("batch_size")
    patient.notices += [*split.warnings, *split.notices]
    missing: dict[type[Any], str] = {
        Parameters: "it has no weights of a model", TrainMode: "it has no model that could be run in both modes",
        Generalisation: "it has no held-out data", Splits: "it has no other split; --against names training data",
        **patient.missing,
    }  # fmt: skip
    relations = split.relations
    usable = np.ones(relations.first, dtype=bool), np.ones(relations.second, dtype=bool)
    if split.images is not None and split.captions is not None:
        vectors = Vectors(split.images, split.captions, relations, options.progress)
        patient.given[Vectors] = vectors
        missing[Matrix] = "it has embeddings, whose similarities are cosines"
        usable = vectors.finite_rows()
    elif split.similarity is not None:
        patient.given[Matrix] = Matrix(split.similarity)
        missing[Vectors] = "it has similarities and no embeddings"
        finite = split.similarity.isfinite()
        usable = finite.all(1).numpy(), finite.all(0).numpy()
        if not usable[0].any():
            usable = np.zeros(relations.first, dtype=bool), np.zeros(relations.second, dtype=bool)
    else:
        missing[Vectors] = missing[Matrix] = "it scores pairs and has no embeddings"
    few = min(int(usable[0].sum()), int(usable[1].sum())) < max(2, 0.5 * min(len(usable[0]), len(usable[1])))
    if few:
        missing[Items] = "too few of its rows are finite"
    else:
        patient.given[Items] = lambda: _sample(split, usable)
    if options.audit is not None and not few:
        known = read_known_pairs(options.audit)
        known.require_items(split.image_ids, split.caption_ids, split.read_texts)
        patient.given[Truth] = lambda: Truth.audited(known, split, patient.part(Items).rows)
    if options.against and not few:
        patient.given[Splits] = lambda: shared_with(split, options)
    patient.missing = {kind: why for kind, why in missing.items() if kind not in patient.given}
    return patient


def _sample(split: SplitEmbeddings, usable: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]) -> Items:
    rows = sample_rows(split.relations, Pair(*usable))
    return Items(subset(split, rows), split, rows)


def _open_texts(target: str, options: Options) -> Patient:
    """Return a patient of rows of text, which need no model."""
    is_named = ":" in target or target.replace("-", "_").lower() in names("datasets")
    if not (location_exists(target) or is_url(target) or is_named):
        raise InputError(
            f"source must be a checkpoint, run folder, dump, data file or data set; there is nothing at {target!r} "
            f"(looked in {Path.cwd()})"
        )
    sources = lint_sources(target)
    known = {f"{name} of {one}": source for one in options.against for name, source in lint_sources(one).items()}
    texts = Texts(target, lint(sources, known, progress=options.progress))
    reason = "it has rows of text and no embeddings"
    missing: dict[type[Any], str] = dict.fromkeys(
        (Vectors, Items, Matrix, Parameters, Splits, Generalisation, TrainMode, Truth), reason
    )
    return Patient(target, {Texts: texts}, {**missing, TrainingLog: _NO_LOG})
