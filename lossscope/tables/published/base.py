"""The printed numbers of the papers, and the known errors in them.

One CSV per paper, a row per printed cell: paper, table, row_id (the paper's number, or position), dataset, split,
method, objective, triplet_weight and pair_weight (of goal), hyperparameters, direction, metric, mean, std, n_runs,
printed (the text of the cell), note. Recalls are in per cent, mAP@5 is in [0, 1], counts are per query or per batch.
The objective is empty if the paper does not name it for the row.
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
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class About:
    """A printed table."""

    cite: str  # the paper's authors and year
    what: str  # what the table shows
    deviation: str  # meaning of its numbers and deviations


def load(paper: str, table: int | None = None) -> pd.DataFrame:
    """Return the printed cells of a paper, or of one of its tables.

    mean and std are numbers; mean_digits and std_digits are the decimals with which they are printed. Missing texts are
    None. Raises InputError listing the papers or tables.

    >>> load("bleeker2022", 2)["printed"].iloc[0]
    '6.79±0.83'
    """
    _require_one_of(paper, tuple(PAPERS), "paper")
    rows = _select(_read(paper), paper, table)
    for name in NUMBERS:
        rows[f"{name}_digits"] = rows[name].map(_decimals)
        rows[name] = pd.to_numeric(rows[name])
    return rows.reset_index(drop=True)


def require_names(table: str, dataset: str | None, methods: Sequence[str]) -> None:
    """Raise InputError, which lists the names, for data or a model that a table, such as li2022_1, does not print."""
    name, _, number = table.rpartition("_")
    rows = load(next(paper for paper in PAPERS if paper.partition("_")[0] == name), int(number))
    if dataset is not None:
        _require_one_of(dataset, tuple(rows["dataset"].dropna().unique()), f"dataset of {table}")
    for method in methods:
        _require_one_of(method, tuple(rows["method"].dropna().unique()), f"model of {table}")


def doubts(paper: str, table: int | None = None) -> pd.DataFrame:
    """Return footnotes on printed numbers that are wrong or misleading; no row if none are known.

    row_id, dataset, objective, triplet_weight, direction and metric identify the cells; `*` is any. counter: whether
    the fault is in the released counter, so that our numbers of the convention `released` have it too.
    """
    _require_one_of(paper, tuple(PAPERS), "paper")
    rows = _read("doubts")
    rows = rows[rows["paper"] == paper]
    rows = rows if table is None else rows[rows["table"] == table]
    return rows.assign(counter=rows["counter"] == "true").reset_index(drop=True)


def about(paper: str, table: int) -> About:
    """Return what a printed table shows. Raises InputError listing the tables."""
    _require_one_of(paper, tuple(PAPERS), "paper")
    row = _select(_read("tables"), paper, table).iloc[0]
    return About(PAPERS[paper], str(row["what"]), str(row["spread"]))


def recipes(paper: str) -> pd.DataFrame:
    """Return how the models of a paper were trained: method, dataset, key, value, source_section, note."""
    _require_one_of(paper, tuple(PAPERS), "paper")
    rows = _read("recipes")
    return rows[rows["paper"] == paper].reset_index(drop=True)


def crosscheck() -> pd.DataFrame:
    """Return printed cells of Bleeker & de Rijke beside the values stored in their notebooks."""
    rows = _read("bleeker_notebook_crosscheck")
    numbers = ["paper_mean", "paper_std", "notebook_mean", "notebook_std"]
    return rows.assign(**{name: pd.to_numeric(rows[name]) for name in numbers})


def _read(name: str) -> pd.DataFrame:
    """Return a copy of a CSV file of this folder, which callers may change."""
    return _read_csv(name).copy()


@cache
def _read_csv(name: str) -> pd.DataFrame:
    rows = pd.read_csv(_FOLDER / f"{name}.csv", dtype=object, keep_default_na=False)
    rows = rows.where(rows != "", None)
    return rows.assign(table=rows["table"].astype(int)) if "table" in rows else rows


def _select(rows: pd.DataFrame, paper: str, table: int | None) -> pd.DataFrame:
    """Return the rows of a paper, or of one of its tables."""
    rows = rows[rows["paper"] == paper]
    if table is None:
        return rows.copy()
    _require_one_of(table, tuple(sorted(rows["table"].unique())), f"table of {paper}")
    return rows[rows["table"] == table].copy()


def _require_one_of(value: object, allowed: Sequence[object], what: str) -> None:
    if value not in allowed:
        raise InputError(f"{what} must be one of {', '.join(map(str, allowed))}; got {value!r}. Choose one of these")


def _decimals(number: str | None) -> int:
    return len(number.partition(".")[2]) if number else 0
