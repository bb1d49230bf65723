"""Read what trainers print: lines with `name value` pairs between progress bars, warnings and other lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lossscope.io.reading import show_path
from lossscope.io.text_files import read_utf8

from .assemble import assemble_log
from .base import TrainingLog
from .column_names import PLACES, rank_name
from .line_pairs import is_known, is_validation, plain, read_pairs
from .line_places import LinePlaces
from .log_table import table_of_records
from .name_parts import parse_name

_BATCH, _EPOCH, _ROW = "batch", "epoch", "step"  # columns of steps and epochs that lines have beside their pairs
Record = dict[str, float]


def has_pairs(text: str) -> bool:
    """Return whether a text has two lines with numbers of one name, or a single line with a known name."""
    return bool(_of_training(read_records(text))[0])


def read_printed_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read the pairs of all lines; lines without pairs are skipped.

    Args:
        path: the file.
        columns: the user's choice of columns; a meter `loss_t 0.30 (0.31)` is a column `loss_t` of first numbers.

    Raises:
        InputError: no pair is a loss or an evaluation.
    """
    name = show_path(path)
    numbered, notices = _of_training(read_records(read_utf8(path)))
    records = [record for _, record in numbered]
    table = table_of_records(records, name, lambda row: f"line {numbered[row][0]}")
    return assemble_log(table, columns, notices=notices)


def read_records(text: str) -> list[tuple[int, Record]]:
    """Return (line number, pairs) of each line with pairs; `batch` and `epoch` say when it was printed."""
    positions, records = LinePlaces(), list[tuple[int, Record]]()
    for number, line in enumerate(text.splitlines(), 1):
        line = plain(line)
        if not line.strip():
            continue
        of_validation = is_validation(line)
        if not of_validation:
            positions.see(line)
        pairs = read_pairs(line, takes_mean=of_validation)
        if of_validation:
            pairs = {name if parse_name(name).split else f"val/{name}": value for name, value in pairs.items()}
        if pairs.keys() - {name for name in pairs if _is_place(name)}:
            of_line = {_EPOCH: positions.epoch, _BATCH: positions.step}
            records.append((number, {**{key: x for key, x in of_line.items() if x is not None}, **pairs}))
    return records


def _of_training(records: Sequence[tuple[int, Record]]) -> tuple[list[tuple[int, Record]], Sequence[str]]:
    """Return records with a step each, and a notice. Names that come once, as in a configuration, are dropped."""
    counts = Counter(name for _, record in records for name in record)
    is_read = {name: count > 1 or (len(records) == 1 and is_known(name)) for name, count in counts.items()}
    kept = [(number, {name: x for name, x in record.items() if is_read[name]}) for number, record in records]
    kept = [(number, record) for number, record in kept if any(not _is_place(name) for name in record)]
    if not kept or any(_is_explicit(name) for _, record in kept for name in record):
        return [(number, _without(record, _BATCH)) for number, record in kept], ()
    commonest = max(counts, key=lambda name: (not _is_place(name), is_known(name), counts[name]))
    rows = [record for _, record in kept if commonest in record]
    if _tells_apart(rows, _BATCH):
        return kept, ("steps are those of the batches that the lines count, [20/176], through all epochs",)
    if _tells_apart(rows, _EPOCH) and all(record.get(_EPOCH, 0.0) % 1 == 0 for record in rows):
        return [(number, _without(record, _BATCH)) for number, record in kept], ()
    steps = np.cumsum([commonest in record for _, record in kept]) - 1.0
    counted = [
        (number, {**_without(record, _BATCH), _ROW: max(float(step), 0.0)})
        for (number, record), step in zip(kept, steps, strict=True)
    ]
    return counted, (f"the lines do not tell their steps apart: those with {commonest} are counted from 0",)


def _tells_apart(rows: Sequence[Record], column: str) -> bool:
    """Return whether a column differs in at least half of the lines."""
    return len({row.get(column) for row in rows} - {None}) >= max(len(rows) / 2, 1)


def _is_place(name: str) -> bool:
    return any(rank_name(field, name) is not None for field in PLACES)


def _is_explicit(name: str) -> bool:
    """Return whether a name is a step that a line states as a pair, not as `[20/176]`."""
    return name != _BATCH and rank_name("step", name) is not None


def _without(record: Record, name: str) -> Record:
    return {key: value for key, value in record.items() if key != name}
