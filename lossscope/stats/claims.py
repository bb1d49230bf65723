"""Which orderings of two systems does a study claim: those that its paper prints, and those of our means?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

COUNT = "count"  # metric of both ways in which papers print counts per query
COUNTED_AS = ("C_q", "C_neg")  # the statistics of COUNT: the first that a system has
PRINTED: Literal["printed"] = "printed"
OURS: Literal["ours"] = "ours"
CLAIM = ("data", "encoder", "metric", "lower", "higher", "origin")  # identify a claim
COLUMNS = (
    *CLAIM, "direction", "probe", "statistic_lower", "statistic_higher", "stated_lower", "stated_higher", "table",
    "note",
)  # fmt: skip
_SYSTEM = ["data", "encoder", "objective_label"]


@dataclass(frozen=True)
class Metric:
    """A number that two systems are ordered by."""

    name: str  # `rsum`, `i2t_R@1`, `t2i_C_0`, `i2t_count`
    direction: str  # `both` of rsum
    statistics: tuple[str, ...]  # a system has the first of these that it has a number of

    @classmethod
    def parse(cls, name: str) -> Metric:
        """Return the metric of a name.

        >>> Metric.parse("rsum").direction, Metric.parse("i2t_R@1").statistics, Metric.parse("t2i_count").statistics
        ('both', ('R@1',), ('C_q', 'C_neg'))
        """
        if name == "rsum":
            return cls(name, "both", (name,))
        direction, _, statistic = name.partition("_")
        return cls(name, direction, COUNTED_AS if statistic == COUNT else (statistic,))


def find_claims(
    ours: pd.DataFrame, printed: pd.DataFrame, metrics: Sequence[Metric]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a claim for each pair of systems of the same data and encoder and each metric, and what has none.

    A claim says which of the two systems has the lower number. It is printed where the paper prints two different
    numbers. Elsewhere it is ours: of the means over the seeds that both systems have. Equal numbers are no ordering.

    Args:
        ours: columns data, encoder, objective_label, seed, direction, probe, statistic, mean; a row per run and number.
        printed: columns data, encoder, objective_label, direction, statistic, printed, table, note.
        metrics: to order by.

    Returns:
        The claims, columns COLUMNS, and a note on each pair without an ordering, and on systems without a metric.

    Raises:
        InputError: columns are missing, or no system has a number of a metric.
    """
    require_columns(ours, [*_SYSTEM, "seed", "direction", "probe", "statistic", "mean"], "rows of runs")
    claims: list[dict[str, Any]] = []
    notes: list[str] = []
    for metric in metrics:
        of_metric = ours[(ours["direction"] == metric.direction) & ours["statistic"].isin(metric.statistics)]
        if of_metric.empty:
            raise InputError(f"--metric must be one that a run has; got {metric.name}. Runs have {_list_metrics(ours)}")
        for (data, encoder), block in of_metric.groupby(["data", "encoder"], sort=False):
            stated = printed[(printed["data"] == data) & (printed["encoder"] == encoder)]
            where = {"data": data, "encoder": encoder, "metric": metric.name, "direction": metric.direction}
            having = list(dict.fromkeys(map(str, block["objective_label"])))
            of_model = ours[(ours["data"] == data) & (ours["encoder"] == encoder)]["objective_label"]
            if lacking := [label for label in dict.fromkeys(map(str, of_model)) if label not in having]:
                notes.append(f"{metric.name} ({data}, {encoder}): not a number of {', '.join(lacking)}")
            for pair in combinations(having, 2):
                numbers = [_numbers(block, label, metric) for label in pair]
                claim = _printed_claim(stated, pair, metric, numbers) or _our_claim(pair, numbers)
                if claim is None:
                    notes.append(f"{metric.name} ({data}, {encoder}): equal or undefined for {pair[0]} and {pair[1]}")
                else:
                    claims.append({**where, "probe": str(block["probe"].iloc[0]), **claim})
    return pd.DataFrame(claims, columns=list(COLUMNS)), tuple(notes)


@dataclass(frozen=True)
class _Numbers:
    """The numbers of a system in a metric."""

    statistic: str
    means: pd.Series[float]  # by seed


def _numbers(block: pd.DataFrame, label: str, metric: Metric) -> _Numbers:
    rows = block[block["objective_label"] == label]
    statistic = next(name for name in metric.statistics if (rows["statistic"] == name).any())
    return _Numbers(statistic, rows[rows["statistic"] == statistic].set_index("seed")["mean"].astype(float))


def _printed_claim(
    stated: pd.DataFrame, pair: tuple[str, str], metric: Metric, numbers: Sequence[_Numbers]
) -> dict[str, Any] | None:
    """Return the ordering that the paper prints; None where it lacks a number, or both are equal."""
    found = [
        stated[
            (stated["objective_label"] == label)
            & (stated["direction"] == metric.direction)
            & (stated["statistic"] == of_system.statistic)
        ]
        for label, of_system in zip(pair, numbers, strict=True)
    ]
    if any(rows.empty for rows in found):
        return None
    common = [table for table in found[0]["table"] if (found[1]["table"] == table).any()]  # one table, where it can be
    cells = [(rows[rows["table"] == common[0]] if common else rows).iloc[0] for rows in found]
    values = [float(cell["printed"]) for cell in cells]
    notes = "; ".join(dict.fromkeys(str(cell["note"]) for cell in cells if cell["note"]))
    table = ", ".join(dict.fromkeys(str(cell["table"]) for cell in cells))
    return _ordered(pair, values, numbers, {"origin": PRINTED, "table": table, "note": notes})


def _our_claim(pair: tuple[str, str], numbers: Sequence[_Numbers]) -> dict[str, Any] | None:
    """Return the ordering of our means over the seeds that both systems have; None where there is none."""
    both = pd.concat([of_system.means for of_system in numbers], axis=1, join="inner").dropna()
    if both.empty:
        return None
    values = [float(value) for value in both.mean()]
    return _ordered(pair, values, numbers, {"origin": OURS, "table": "", "note": ""})


def _ordered(
    pair: tuple[str, str], values: Sequence[float], numbers: Sequence[_Numbers], more: dict[str, Any]
) -> dict[str, Any] | None:
    if values[0] == values[1]:
        return None
    low, high = (0, 1) if values[0] < values[1] else (1, 0)
    return {
        "lower": pair[low], "higher": pair[high], "statistic_lower": numbers[low].statistic,
        "statistic_higher": numbers[high].statistic, "stated_lower": values[low], "stated_higher": values[high], **more,
    }  # fmt: skip


def _list_metrics(ours: pd.DataFrame) -> str:
    pairs = ours[["direction", "statistic"]].drop_duplicates().itertuples(index=False)
    names = [statistic if direction == "both" else f"{direction}_{statistic}" for direction, statistic in pairs]
    counted = ours.loc[ours["statistic"].isin(COUNTED_AS), "direction"].unique()
    return ", ".join([*names, *(f"{direction}_{COUNT}" for direction in counted)])
