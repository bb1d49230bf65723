"""Does a frame's file give back its sums over units, and does lossscope refuse others?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from lossscope.core.intervals import ItemSums
from lossscope.engine.sweep_intervals import sums_of_table, sums_table
from lossscope.errors import InputError

UNITS = 6
FIRST, SECOND = '["a", "C_neg"]', '["a", "W_neg"]'
SUMS = {
    FIRST: ItemSums(np.array([1.0, 2, 0, 0, 3, 0]), np.arange(6.0), np.array([0.0, 0, 0, 0, -1, 2]), 0.5, 0.2, 0.1),
    SECOND: ItemSums(np.ones(6), np.ones(6), np.zeros(6), float("nan")),
}


def test_sums_come_back_as_they_were_written() -> None:
    back = sums_of_table(sums_table(SUMS), UNITS, "items-00000.parquet")
    assert list(back) == [FIRST, SECOND]
    for name, sums in SUMS.items():
        for kind in ("weights", "values", "effects", "overlap", "predicted", "observed"):
            np.testing.assert_array_equal(getattr(back[name], kind), getattr(sums, kind))
    assert sums_of_table(sums_table({}), UNITS, "items-00000.parquet") == {}


def _without(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=f"effects {FIRST}")


def _renamed(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns={f"weights {SECOND}": "weight"})


def _missing(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{f"values {FIRST}": [None] * len(table)})


def _infinite(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace({f"effects {FIRST}": -1.0}, np.inf)


def _negative(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{f"weights {SECOND}": -table[f"weights {SECOND}"]})


def _negative_square(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace({f"weights {FIRST}": SUMS[FIRST].predicted}, -0.2)


def _half(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(item=table["item"] + 0.5)


def _beyond(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace({"item": 5}, UNITS)


def _below(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace({"item": 5}, -2)


def _twice(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace({"item": 5}, 4)


def _without_whole(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["item"] >= 0]


def _without_items(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(item=None)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without, "it differs in effects"),
        (_renamed, "it differs in effects"),
        (_missing, "values .* must be a number for every unit"),
        (_infinite, "effects .* must be a number for every unit"),
        (_negative, "weights and squares"),
        (_negative_square, "weights and squares"),
        (_half, "units 0 to 5 at most once"),
        (_beyond, "units 0 to 5 at most once"),
        (_below, "units 0 to 5 at most once"),
        (_twice, "units 0 to 5 at most once"),
        (_without_whole, "and -1 for all"),
        (_without_items, "units 0 to 5 at most once"),
    ],
)  # fmt: skip
def test_changed_sums_are_refused(damage: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
    """Correct digests do not make correct numbers: a column without numbers ended in a TypeError."""
    with pytest.raises(InputError, match=message) as raised:
        sums_of_table(damage(sums_table(SUMS)), UNITS, "items-00000.parquet")
    assert "items-00000.parquet" in str(raised.value) and "Remove the folder" in str(raised.value)
