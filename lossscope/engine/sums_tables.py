"""Sums over units as tables, which frames keep: three columns a statistic, a row a unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.intervals import ItemSums
from lossscope.errors import InputError

from .sweep_intervals import NamedSums

_UNIT, _ALL = "item", -1  # column of tables, and its value in the row of sums that are of no single unit
_KINDS = ("weights", "values", "effects")
_ANEW = "Remove the folder and run the command again"


def sums_table(sums: NamedSums) -> pd.DataFrame:
    """Return sums as a table: three columns a statistic, a row for each unit that occurs, one for what is of all."""
    if not sums:
        return pd.DataFrame({_UNIT: np.zeros(0, np.int64)})
    occurs = np.any([(one.weights != 0) | (one.effects != 0) for one in sums.values()], axis=0)
    units = np.flatnonzero(occurs)
    columns: dict[str, Any] = {_UNIT: np.append(units, _ALL)}
    for name, one in sums.items():
        of_all = (one.predicted, one.observed, one.overlap)
        for kind, whole in zip(_KINDS, of_all, strict=True):
            columns[f"{kind} {name}"] = np.append(getattr(one, kind)[units], whole)
    return pd.DataFrame(columns)


def sums_of_table(table: pd.DataFrame, units: int, where: str) -> NamedSums:
    """Return the sums that a table of `sums_table` holds.

    Args:
        table: rows of a file.
        units: how many units the sweep has.
        where: names the file in messages.

    Raises InputError for columns other than three a statistic, units that are not of the sweep or stand twice, and
    numbers that are missing.
    """
    names = _names_of_sums(table, where)
    places = _places(table, units, where)
    own = places != _ALL
    sums: NamedSums = {}
    for name in names:
        arrays, of_all = [], []
        for kind in _KINDS:
            column = table[f"{kind} {name}"].to_numpy(np.float64)
            if not np.isfinite(column[own]).all():
                raise InputError(f"{kind} {name} of {where} must be a number for every unit. {_ANEW}")
            array = np.zeros(units)
            array[places[own]] = column[own]
            arrays.append(array)
            of_all.append(float(column[~own].sum()))
        predicted, observed, overlap = of_all
        if not (0 <= predicted < math.inf and 0 <= observed < math.inf and (arrays[0] >= 0).all()):
            raise InputError(f"weights and squares of {name} in {where} must be numbers from 0. {_ANEW}")
        sums[name] = ItemSums(arrays[0], arrays[1], arrays[2], overlap, predicted, observed)
    return sums


def _names_of_sums(table: pd.DataFrame, where: str) -> list[str]:
    """Return the names of the statistics whose sums a table has."""
    columns = [str(column) for column in table]
    names = [column.partition(" ")[2] for column in columns if column.startswith(f"{_KINDS[0]} ")]
    expected = {_UNIT, *(f"{kind} {name}" for kind in _KINDS for name in names)}
    different = sorted(expected.symmetric_difference(columns))
    if different or len(set(columns)) < len(columns):
        which = different[0] if different else "one that stands twice"
        raise InputError(
            f"{where} must have the column {_UNIT} and {', '.join(_KINDS)} of each statistic, and no other; it differs "
            f"in {which}. {_ANEW}"
        )
    return names


def _places(table: pd.DataFrame, units: int, where: str) -> npt.NDArray[np.int64]:
    """Return the unit of each row of a table, `_ALL` in one."""
    places = table[_UNIT].to_numpy(np.float64)
    if not len(table.columns) > 1:
        return places.astype(np.int64)
    known = np.isin(places, np.arange(_ALL, units))
    if not known.all() or len(np.unique(places)) < len(places) or _ALL not in places:
        raise InputError(
            f"column {_UNIT} of {where} must have the units 0 to {units - 1} at most once, and {_ALL} for all. {_ANEW}"
        )
    return places.astype(np.int64)
