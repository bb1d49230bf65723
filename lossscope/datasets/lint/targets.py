"""What is looked at: a file of rows, a folder, or the splits of a data set."""

from __future__ import annotations

import re
from pathlib import Path

from lossscope.core.choices import WHOLE
from lossscope.errors import InputError
from lossscope.io.locations import is_url, join_location, location_exists, suffix_of
from lossscope.io.number_tables import is_number_table
from lossscope.registry import build, names
from lossscope.spec import Spec, format_value

from ..rows.column_names import ColumnNames
from ..rows.row_files import READERS, RowFiles
from ..rows.row_source import RowDataset, RowSource, SplitRows

_FOLDERS = {"corpus.jsonl": "beir", "dataset_dict.json": "saved", "state.json": "saved"}  # a file in it -> data set

_LIKE_SPEC = re.compile(r"[^,=]*\.py:|[\w-]+:[\w-]+=")  # of a plug-in, or with an option


def lint_sources(target: str, columns: str = "") -> dict[str, RowSource]:
    """Return the rows of a target by the name of their split, or of the file; train first.

    Args:
        target: path, URL, folder, pattern, or the spec of a data set of two texts.
        columns: names of a file's columns, `query=title,positive=body`.

    Raises:
        InputError: there is no such file, or the data set is not of two texts; SpecError for a spec that is none.
    """
    spec = _spec_of(target)
    if spec is None:
        return {target: RowFiles.parse(target, ColumnNames.parse(columns))}
    if columns:
        raise InputError(f"columns must stand in the spec: {target},columns=...")
    dataset = build("datasets", spec)
    if isinstance(dataset, RowDataset) and getattr(dataset, "is_one_file", False):
        return {target: dataset.row_source(WHOLE)}
    splits = [name for name in dataset.splits() if name != WHOLE]
    if isinstance(dataset, RowDataset):
        return {name: dataset.row_source(name) for name in splits}
    return {name: SplitRows(dataset.split(name)) for name in splits}


def data_spec(target: str) -> str:
    """Return the spec of the data set that a target of rows is: `texts:file=...` of files.

    >>> data_spec("train.jsonl")
    'texts:file=train.jsonl'
    """
    return str(_spec_of(target) or Spec("texts", {"file": target}))


def is_rows(target: str) -> bool:
    """Return whether a target names rows of text, by its suffix or as a spec, and no embeddings."""
    is_file = suffix_of(target) in READERS and not is_number_table(Path(target))
    return is_file or _spec_of(target) is not None


def _spec_of(target: str) -> Spec | None:
    """Return the spec that a target is or stands for, None for files of rows."""
    if is_url(target):
        return None
    if not location_exists(target):
        name = target.partition(":")[0].strip().replace("-", "_").lower()
        is_spec = name in names("datasets") or _LIKE_SPEC.match(target)
        return Spec.parse(target) if is_spec else None
    found = (name for file, name in _FOLDERS.items() if location_exists(join_location(target, file)))
    kind = next(found, None)
    return None if kind is None else Spec(kind, {"root": format_value(target)})
