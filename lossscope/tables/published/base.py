"""What did the papers print, and which of it is known to be wrong?

One CSV per paper, a row per printed cell: paper, table, row_id (the paper's number, or position), dataset, split,
method, objective, triplet_weight and pair_weight (of goal), hyperparameters, direction, metric, mean, std, n_runs,
printed (the cell as it stands), note. Recalls in per cent, mAP@5 in [0, 1], counts per query or per batch. An empty
objective is one that the paper does not name for the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from lossscope.errors import InputError

PAPERS = {
    "bleeker2022": "Bleeker & de Rijke (2022)",
    "xuan2023_goal": "Xuan & Chen (2023)",
    "li2022_unified": "Li et al. (2022)",
}
NUMBERS = ("mean", "std")
_HOME = Path(__file__).parent


@dataclass(frozen=True)
class About:
    """A printed table: who wrote it, what it shows, and what its numbers and deviations are."""

    cite: str
    what: str
    spread: str


def load(paper: str, table: int | None = None) -> pd.DataFrame:
    """The printed cells of a paper, or of one of its tables.

    mean and std are numbers; mean_digits and std_digits say with how many decimals they are printed. Words that are not
    there are None. Raises InputError naming the papers or tables there are.

    >>> load("bleeker2022", 2)["printed"].iloc[0]
    '6.79±0.83'
    """
    _known(paper, tuple(PAPERS), "paper")
    rows = _of_table(_read(paper), paper, table)
    for name in NUMBERS:
        rows[f"{name}_digits"] = rows[name].map(_decimals)
        rows[name] = pd.to_numeric(rows[name])
    return rows.reset_index(drop=True)


def doubts(paper: str, table: int | None = None) -> pd.DataFrame:
    """Footnotes on printed numbers that are wrong, or not what they seem; no row where nothing is known.

    row_id, dataset, objective, triplet_weight, direction and metric say which cells; `*` is any. counter: the fault is
    in the released counter, so that it is in our numbers of the convention `released` too.
    """
    _known(paper, tuple(PAPERS), "paper")
    rows = _read("doubts")
    rows = rows[rows["paper"] == paper]
    rows = rows if table is None else rows[rows["table"] == table]
    return rows.assign(counter=rows["counter"] == "true").reset_index(drop=True)


def about(paper: str, table: int) -> About:
    """What a printed table is. Raises InputError naming the tables there are."""
    _known(paper, tuple(PAPERS), "paper")
    row = _of_table(_read("tables"), paper, table).iloc[0]
    return About(PAPERS[paper], str(row["what"]), str(row["spread"]))


def recipes(paper: str) -> pd.DataFrame:
    """How the models of a paper were trained and counted: method, dataset, key, value, source_section, note."""
    _known(paper, tuple(PAPERS), "paper")
    rows = _read("recipes")
    return rows[rows["paper"] == paper].reset_index(drop=True)


def crosscheck() -> pd.DataFrame:
    """Printed cells of Bleeker & de Rijke beside the values stored in their notebooks."""
    rows = _read("bleeker_notebook_crosscheck")
    numbers = ["paper_mean", "paper_std", "notebook_mean", "notebook_std"]
    return rows.assign(**{name: pd.to_numeric(rows[name]) for name in numbers})


def _read(name: str) -> pd.DataFrame:
    return _text(name).copy()


@cache
def _text(name: str) -> pd.DataFrame:
    rows = pd.read_csv(_HOME / f"{name}.csv", dtype=object, keep_default_na=False)
    rows = rows.where(rows != "", None)
    return rows.assign(table=rows["table"].astype(int)) if "table" in rows else rows


def _of_table(rows: pd.DataFrame, paper: str, table: int | None) -> pd.DataFrame:
    rows = rows[rows["paper"] == paper]
    if table is None:
        return rows.copy()
    _known(table, tuple(sorted(rows["table"].unique())), f"table of {paper}")
    return rows[rows["table"] == table].copy()


def _known(value: object, there: Sequence[object], what: str) -> None:
    if value not in there:
        raise InputError(f"{what} must be one of {', '.join(map(str, there))}; got {value!r}. Choose one of these")


def _decimals(number: str | None) -> int:
    return len(number.partition(".")[2]) if number else 0
