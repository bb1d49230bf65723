"""Read the rows of text of a model's data set, as they are in their files and not as a reader cleaned them."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from lossscope.core.choices import WHOLE
from lossscope.core.facts import Missing
from lossscope.core.request import Request
from lossscope.datasets.base import Texts as TextsOfSplit
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import is_rows, lint_sources
from lossscope.datasets.rows.row_source import RowDataset, RowSource, SplitRows
from lossscope.errors import InputError
from lossscope.io.trusted_code import is_trusted
from lossscope.registry import build

from ..parts.patient import Patient
from ..parts.texts import Texts

_NONE = "its data set has no text rows"


def add_rows(patient: Patient, spec: str | None) -> None:
    """Add the rows of a model's data set; they are read when first needed.

    Args:
        patient: with a model.
        spec: of its data; None where it has no data set.
    """
    if spec is None or patient.sides.is_image_text:
        patient.missing[Texts] = _NONE
        return
    patient.given[Texts] = partial(_read, patient, spec)


def _read(patient: Patient, spec: str) -> Texts:
    """Return the faults of the rows. Raises Missing where they are not texts, or cannot be read."""
    if not is_trusted(spec):
        raise Missing("its data set is Python code that is not trusted; --trust-code reads it")
    options = patient.options
    try:
        rows = _rows_of(build("datasets", spec), options.source)
        others = (other for other in options.against if is_rows(other))
        known = {f"{name} of {other}": source for other in others for name, source in lint_sources(other).items()}
        report = lint({spec: rows}, known, progress=options.source.progress)
        patient.notices += report.notes
        return Texts(spec, report)
    except InputError as error:
        patient.notices.append(f"the rows of {spec} were not checked: {error}")
        raise Missing(f"the rows of its data set cannot be read: {error}") from None


def _rows_of(dataset: Any, request: Request) -> RowSource:
    """Return the rows of a split, or all rows of a file with hashed splits. Raises Missing where they are not texts."""
    if isinstance(dataset, RowDataset):
        splits: Collection[str] = dataset.splits()  # type: ignore[attr-defined]
        return dataset.row_source(WHOLE if WHOLE in splits else request.named_split)
    split = dataset.split(request.named_split)
    if not isinstance(split.images, TextsOfSplit):
        raise Missing(_NONE)
    return SplitRows(split)
