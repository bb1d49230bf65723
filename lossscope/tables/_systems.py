"""Which pairs of systems are compared? Their labels, shared labels, and notes on missing numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import pandas as pd

from lossscope.stats.naming import UNKNOWN

from ._specs import KINDS, shorten

LABELS = ("data", "encoder", "metric", "system", "baseline")


def with_metric(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column `metric`: `i2t R@1`, or `rsum` of both directions."""
    pairs = zip(rows["direction"], rows["statistic"], strict=True)
    return rows.assign(
        metric=[statistic if direction == "both" else f"{direction} {statistic}" for direction, statistic in pairs]
    )


def label_columns(rows: pd.DataFrame) -> list[str]:
    """Return the labels that get a column: both systems, and labels that differ between rows."""
    return [name for name in LABELS if name in ("system", "baseline") or rows[name].nunique() > 1]


def shared_labels(rows: pd.DataFrame, labels: Sequence[str]) -> list[str]:
    """Return data, encoder and metric if all rows share them and no column has them; specs in their short form.

    Dumps do not state their data and encoder: the names of their files stand for them.
    """
    names = [name for name in ("data", "encoder", "metric") if name not in labels]
    known = [name for name in names if str(rows[name].iloc[0]) != UNKNOWN]
    files = [] if known == names else dict.fromkeys(PurePath(str(name)).name for name in _systems_of(rows))
    return [*files, *(_shared(rows, name) for name in known)]


def pairs_of_notes(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return each note on undefined numbers and on runs without a partner, with its pairs of systems."""
    pairs: dict[str, list[str]] = {}
    for column, start in (("note", ""), ("left_out", "left out: ")):
        for row in rows[rows[column].notna() & (rows[column] != "")].to_dict("records"):
            pairs.setdefault(f"{start}{row[column]}", []).append(f"{row['system']} against {row['baseline']}")
    return pairs


def how_rough(rows: pd.DataFrame, number: str, seeds: str) -> str:
    """Return an interval as multiples of its number: `0.52 to 6.28 times with 3`, 3 the number of seeds.

    Args:
        rows: columns NUMBER, NUMBER_low, NUMBER_high and the column `seeds`.
        number: name of the column NUMBER.
        seeds: column of the number of seeds.
    """
    return ", ".join(
        f"{row[f'{number}_low'] / row[number]:.2f} to {row[f'{number}_high'] / row[number]:.2f} times with "
        f"{int(row[seeds])}"
        for row in rows.drop_duplicates(seeds).sort_values(seeds).to_dict("records")
    )


def _systems_of(rows: pd.DataFrame) -> list[object]:
    """Return the system and the baseline of each row."""
    return [name for pair in zip(rows["system"], rows["baseline"], strict=True) for name in pair]


def _shared(rows: pd.DataFrame, name: str) -> str:
    value = str(rows[name].iloc[0])
    return shorten([value], KINDS[name]).get(value, value) if name in KINDS else value
