"""Collect all numbers of evaluations under their names in the file, also those that no check reads by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from .base import EVALUATION_COLUMNS
from .column_names import PLACES, rank_name
from .log_table import Cells, Floats, LogTable
from .name_parts import normal_name, parse_name

Curve = tuple[Floats, Floats]  # steps, ascending and each once, and values
_OF_MACHINE = re.compile(r"(.*_)?(runtime|time|per_second|memory|mem|eta|samples|steps|jit_compilation_time)")


def latest(steps: Floats, values: Floats) -> Curve:
    """Return each step once, in ascending order, with its last logged value."""
    order = np.argsort(steps, kind="stable")
    steps, values = steps[order], values[order]
    is_last = np.append(steps[1:] != steps[:-1], True) if len(steps) else np.empty(0, bool)
    return steps[is_last], values[is_last]


def score_curves(table: LogTable, steps: Floats, names: Mapping[str, str]) -> dict[str, Curve]:
    """Return name in the file -> curve, for columns of a validation, or with a known name.

    Args:
        table: the log. A log without a loss comes from an evaluator: all its columns are evaluated.
        steps: (length,) of its rows.
        names: name of the field -> name in the file, of the known columns.
    """
    known = {names[field] for field in EVALUATION_COLUMNS if field in names}
    curves = {}
    for name, cells in table.cells.items():
        is_score = name in known or "loss" not in names or parse_name(name).split in ("val", "val_train")
        if is_score and _is_measured(name) and _are_numbers(cells):
            column = table.column(name)
            curves[name] = latest(steps[column.rows], column.values)
    return curves


def _is_measured(name: str) -> bool:
    """Return whether a column describes the model, not its step or its time."""
    is_place = any(rank_name(field, name) is not None for field in PLACES)
    return not is_place and not _OF_MACHINE.fullmatch(normal_name(name)) and not normal_name(name).endswith("epoch")


def _are_numbers(cells: Cells) -> bool:
    try:
        np.array([float(str(cell)) for cell in cells.values])
    except ValueError:
        return False
    return not any("_" in str(cell) or isinstance(cell, bool) for cell in cells.values)
