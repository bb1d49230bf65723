"""The intervals of a sweep: sums of its parts by name of the statistic, their tables in frames, and their bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.intervals import ItemSums, add_sums
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.sides import plural
from lossscope.errors import InputError
from lossscope.io.frames import KEYS

_NEVER_NEGATIVE = frozenset({"samples", "queries", "weight", "%", "rank"})  # units
_UNIT, _ALL = "item", -1  # column of tables, and its value in the row of sums over all units
_KINDS = ("weights", "values", "effects")
_ANEW = "Remove the folder and run the command again"
_NAMED = 4  # statistics without an interval that a message names, at most

NamedSums = dict[str, ItemSums]  # name of a statistic, see `name_of` -> its sums


def clip_interval(low: float, high: float, unit: str, within_one: bool = False) -> tuple[float, float]:
    """Clip an interval to the possible values of a number: from 0, to 100 %, or to 1.

    Args:
        low: the lower bound.
        high: the upper bound.
        unit: of the number.
        within_one: whether the number lies between 0 and 1.
    """
    least = 0.0 if within_one or unit in _NEVER_NEGATIVE else -math.inf
    most = 1.0 if within_one else 100.0 if unit == "%" else math.inf
    return max(low, least), min(high, most)


def name_of(keys: Mapping[Any, Any], statistic: str) -> str:
    """Return the name of a statistic of a summary row: its keys as JSON, the statistic last."""
    return json.dumps([*(_plain(keys[name]) for name in KEYS), statistic])


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    return float(value)


def join_sums(parts: Iterable[NamedSums]) -> NamedSums:
    """Return the sums over parts, which may have different statistics."""
    by_name: dict[str, list[ItemSums]] = {}
    for part in parts:
        for name, sums in part.items():
            by_name.setdefault(name, []).append(sums)
    return {name: add_sums(parts_of_name) for name, parts_of_name in by_name.items()}


@dataclass(frozen=True)
class SweepIntervals:
    """The intervals of a sweep's means, over the items of its split."""

    units: SamplingUnits
    level: float
    sums: NamedSums = field(default_factory=dict)
    within_one: frozenset[str] = frozenset()  # statistics that lie between 0 and 1

    def ends(self, keys: Mapping[Any, Any], statistic: str, unit: str, mean: float) -> dict[str, Any]:
        """Return `low`, `high`, `level` and `method` of a summary row; empty if it has no interval.

        Args:
            keys: of the row.
            statistic: of the row.
            unit: of the row; a count is never negative.
            mean: of the row, the centre of the interval.
        """
        sums = self.sums.get(name_of(keys, statistic))
        if sums is None or not math.isfinite(mean):
            return {}
        low, high = clip_interval(*sums.interval(mean, self.level), unit, statistic in self.within_one)
        if not math.isfinite(low):
            return {}
        return {"low": low, "high": high, "level": self.level, "method": self.method}

    def lacking(self, summary: pd.DataFrame, groups: int | None = None) -> str | None:
        """Return which statistics have no interval, and why: `hubness; cocos of smoothap ...`; None if all have one.

        The text does not name statistics that are equal for all units, which have no interval either. After a jackknife
        it is None: only totals of batches and statistics that no group changes are then without an interval.

        Args:
            summary: rows with intervals, if any.
            groups: of the jackknife; None: no jackknife ran.
        """
        if groups is not None:
            return None
        lacks = [self._lacks(row) for row in summary.to_dict("records")]
        by = ["probe", "objective"]
        by_probe = summary.assign(lacks=lacks).groupby(by, sort=False, dropna=False, observed=True)
        labels: dict[str, None] = {}
        for (probe, objective), rows in by_probe:
            names = list(rows.loc[rows["lacks"], "statistic"].unique())
            if names:
                of = "" if _plain(objective) is None else f" of {str(objective).partition(':')[0]}"
                which = "" if rows["lacks"].all() else f" {', '.join(names)}"
                labels.setdefault(f"{probe}{which}{of}")
        if not labels:
            return None
        more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
        named = "; ".join(list(labels)[:_NAMED])
        return (
            f"{named}{more}: an interval takes means over queries, and what each candidate adds to them; "
            "--interval-groups 20 repeats the sweep 20 times for others"
        )

    def _lacks(self, row: Mapping[Any, Any]) -> bool:
        sums = self.sums.get(name_of(row, row["statistic"]))
        return bool(row["low"] != row["low"]) and (sums is None or not sums.is_known)  # NaN is not equal to itself

    @property
    def method(self) -> str:
        """The column `method` of rows with intervals."""
        return f"two-way over {self.units.number} {plural(self.units.name)}"


def sums_table(sums: NamedSums) -> pd.DataFrame:
    """Return sums as a table: three columns a statistic, a row for each unit that occurs, and a row for all units."""
    if not sums:
        return pd.DataFrame({_UNIT: np.zeros(0, np.int64)})
    occurs = np.any([(item_sums.weights != 0) | (item_sums.effects != 0) for item_sums in sums.values()], axis=0)
    units = np.flatnonzero(occurs)
    columns: dict[str, Any] = {_UNIT: np.append(units, _ALL)}
    for name, item_sums in sums.items():
        of_all = (item_sums.predicted, item_sums.observed, item_sums.overlap)
        for kind, whole in zip(_KINDS, of_all, strict=True):
            columns[f"{kind} {name}"] = np.append(getattr(item_sums, kind)[units], whole)
    return pd.DataFrame(columns)


def sums_of_table(table: pd.DataFrame, units: int, where: str) -> NamedSums:
    """Return the sums that a table of `sums_table` holds.

    Args:
        table: rows of a file.
        units: how many units the sweep has.
        where: names the file in messages.

    Raises InputError for unexpected columns, unknown or repeated units, and missing numbers.
    """
    names = _names_of_sums(table, where)
    row_units = _units_of_rows(table, units, where)
    of_units = row_units != _ALL
    sums: NamedSums = {}
    for name in names:
        arrays, of_all = [], []
        for kind in _KINDS:
            column = table[f"{kind} {name}"].to_numpy(np.float64)
            if not np.isfinite(column[of_units]).all():
                raise InputError(f"{kind} {name} of {where} must be a number for every unit. {_ANEW}")
            array = np.zeros(units)
            array[row_units[of_units]] = column[of_units]
            arrays.append(array)
            of_all.append(float(column[~of_units].sum()))
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
        which = different[0] if different else "a repeated column"
        raise InputError(
            f"{where} must have the column {_UNIT} and {', '.join(_KINDS)} of each statistic, and no other; it differs "
            f"in {which}. {_ANEW}"
        )
    return names


def _units_of_rows(table: pd.DataFrame, units: int, where: str) -> npt.NDArray[np.int64]:
    """Return the unit of each row of a table, `_ALL` in a single row."""
    row_units = table[_UNIT].to_numpy(np.float64)
    if not len(table.columns) > 1:
        return row_units.astype(np.int64)
    known = np.isin(row_units, np.arange(_ALL, units))
    if not known.all() or len(np.unique(row_units)) < len(row_units) or _ALL not in row_units:
        raise InputError(
            f"column {_UNIT} of {where} must have the units 0 to {units - 1} at most once, and {_ALL} for all. {_ANEW}"
        )
    return row_units.astype(np.int64)
