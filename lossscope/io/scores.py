"""The one number that runs are compared by: rsum of images and captions, nDCG@10 of any other sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from lossscope.errors import InputError

from .frames import in_folds


@dataclass(frozen=True)
class Score:
    """A number of a run's retrieval, larger is better."""

    name: str  # of its column in rows of epochs and runs, and of its statistic
    digits: int  # decimals that are shown
    of: str  # its largest value, behind a number: ` of 600`
    unit: str  # of differences, behind a number: ` points`
    meaning: str

    def text(self, value: float) -> str:
        """Return `rsum 300.1 of 600`."""
        return f"{self.name} {self.number(value)}{self.of}"

    def number(self, value: float) -> str:
        """Return the value with its decimals."""
        return f"{value:.{self.digits}f}"


RSUM = Score("rsum", 1, " of 600", " points", "the sum of six recalls, of at most 600")
NDCG = Score("nDCG@10", 3, "", "", "nDCG@10 of the first direction, of at most 1")
SCORES = (RSUM, NDCG)


def score_of(names: Iterable[str]) -> Score:
    """Return the score whose name is among those of columns or statistics; rsum where none is.

    >>> score_of(["epoch", "nDCG@10"]).name, score_of(["epoch"]).name
    ('nDCG@10', 'rsum')
    """
    present = set(map(str, names))
    return next((score for score in SCORES if score.name in present), RSUM)


def as_rsum(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their score in the column rsum, where code draws or counts it whatever it is."""
    score = score_of(frame.columns)
    return frame if score is RSUM else frame.rename(columns={score.name: RSUM.name})


def score_column(names: Iterable[str]) -> tuple[str, Score]:
    """Return the column of a score in rows of epochs, and the score: `rsum`, `q2d_nDCG@10` or `nDCG@10` itself.

    >>> score_column(["epoch", "q2d_nDCG@10", "d2q_nDCG@10"])[0], score_column(["epoch", "rsum"])[0]
    ('q2d_nDCG@10', 'rsum')
    """
    listed = list(map(str, names))
    of_direction = next((name for name in listed if name == NDCG.name or name.endswith(f"_{NDCG.name}")), None)
    return (RSUM.name, RSUM) if RSUM.name in listed or of_direction is None else (of_direction, NDCG)


def require_one_score(columns: Mapping[str, Iterable[str]]) -> None:
    """Raise InputError where runs are of different sides, as the columns of their metrics.csv say.

    Args:
        columns: run -> names of its columns.
    """
    by_column: dict[str, str] = {}
    for run, names in columns.items():
        by_column.setdefault(score_column(names)[0], run)
    if len(by_column) > 1:
        got = " and ".join(f"{column} of {run}" for column, run in by_column.items())
        raise InputError(f"runs of a trajectory must be of the same sides; got {got}. Draw them apart")


def score_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the summary rows of the score, one a run: of a whole split, and of the first direction if it has one.

    Args:
        rows: summary rows of retrieval, of runs of the same sides.
    """
    scores = rows[(rows["probe"] == "recall") & _is_score(rows)]
    return _of_first_direction(scores if scores.empty else scores[~in_folds(scores)])


def score_comparisons(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons of the score: of the first direction, where it is of one direction.

    Args:
        rows: comparisons of systems, each of a statistic.
    """
    return _of_first_direction(rows[_is_score(rows)])


def _is_score(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["statistic"] == score_of(rows["statistic"]).name


def _of_first_direction(rows: pd.DataFrame) -> pd.DataFrame:
    if rows.empty or "direction" not in rows:
        return rows
    shown: pd.DataFrame = rows[rows["direction"] == rows["direction"].iloc[0]]
    return shown
