"""Read trainer_state.json of a Hugging Face Trainer, and logs of JSON lines: one object a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.json_files import expect, member, parse_json_lines, read_json_value
from lossscope.io.reading import show_path
from lossscope.io.text_files import read_utf8

from .assemble import assemble_log
from .base import TrainingLog
from .log_table import table_of_records

_HISTORY = "log_history"


def read_trainer_state(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read the `log_history` of a trainer_state.json, or a list of such rows.

    Its `train_batch_size` counts the rows of one device. A row may bring mined negatives: these are no candidates.

    Args:
        path: the file.
        columns: the user's choice of columns.

    Raises:
        InputError: no JSON, no rows, no loss, or a text where a number must be.
    """
    name, value = show_path(path), read_json_value(path)
    state: dict[str, Any] = {_HISTORY: value} if isinstance(value, list) else expect(value, dict, name)
    rows = member(state, _HISTORY, list, name)
    records = [expect(row, dict, f"row {number} of {_HISTORY} of {name}") for number, row in enumerate(rows, 1)]
    size = state.get("train_batch_size")
    is_size = isinstance(size, int) and not isinstance(size, bool) and size > 0
    table = table_of_records(records, name, lambda row: f"row {row + 1} of {_HISTORY}")
    if not records:
        raise InputError(f"{_HISTORY} of {name} must have rows; it has none. Set logging_steps, and train again")
    log = assemble_log(table, columns, batch_size=size if is_size else None)
    return replace(log, pairs_are_candidates=False)


def read_json_lines_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read a file with a JSON object a line; a last line that is still being written is left out.

    Raises InputError as read_trainer_state does, by the number of the line.
    """
    name, text = show_path(path), read_utf8(path)
    lines, notices = text.split("\n"), []
    if lines[-1].strip() and not lines[-1].rstrip().endswith("}"):
        lines.pop()
        notices.append("the last line is cut off and left out")
    numbers, records = parse_json_lines(lines, 1, name)
    if not records:
        raise InputError(f"{name} must have a JSON object in each line; it has none. Train for some steps")
    return assemble_log(table_of_records(records, name, lambda row: f"line {numbers[row]}"), columns, notices=notices)
