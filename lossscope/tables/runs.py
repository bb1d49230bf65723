"""May rows of many runs stand in one table, and what is their mean over seeds?

A row says, beside what summary rows say, whose it is: run (unique name), data, encoder and trained (labels), spec (the
canonical objective of the training), dataset and method (what published tables call data and encoder, or None).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from lossscope.errors import InputError, NoRows
from lossscope.io.frames import SUMMARY
from lossscope.stats.naming import require_distinct_seeds

from ._footnotes import Footnotes, joined
from ._summary import listed, name_of, shown, whole_splits
from .cells import Cell

WHO = ("data", "encoder", "objective_label")
SETTINGS = ("eps", "batch_size", "sampling")
COLUMNS = (*(c for c in SUMMARY if c != "n_defined"), "run", *WHO, "spec", "dataset", "method")
_ONE = ("run", "objective", "direction", "probe", "statistic", "convention", *SETTINGS)


def of_probe(frame: pd.DataFrame, probe: str, what: str) -> pd.DataFrame:
    """Rows of `recall` on whole splits, or of another probe as counted with the objective of the training.

    Raises InputError naming missing columns, missing words, or the probes there are.
    """
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        got = ", ".join(map(str, frame.columns))
        raise InputError(
            f"rows of runs must have the columns {', '.join(COLUMNS)}; got {got}. Add {', '.join(missing)}"
        )
    for column in ("run", *WHO, "spec"):
        if frame[column].isna().any():
            raise InputError(f"{column} of rows of runs must be words; got nothing in some rows. Name every run")
    rows = frame[frame["probe"] == probe]
    rows = whole_splits(rows) if probe == "recall" else _own(rows)
    if rows.empty:
        command = "eval" if probe == "recall" else probe
        raise NoRows(
            f"table {what} must have rows of the probe {probe!r}, counted with the objective of the training; got "
            f"{listed(frame['probe'])}. Run `lossscope {command}`"
        )
    return rows.assign(**{column: rows[column].map(_plain) for column in ("dataset", "method", "convention")})


def check(rows: pd.DataFrame, what: str) -> None:
    """Raise InputError, naming values and runs, for what would make a wrong number.

    These are: rows twice, a seed twice, one label for two specs, data sets or models, and runs that were measured on
    other data, or with another eps, batch size or sampling, than their neighbours.
    """
    twice = rows[rows.duplicated(list(_ONE))]
    if len(twice):
        row = twice.iloc[0]
        told = f"{row['run']}, {row['direction']} {row['statistic']}, {shown(row['convention'])}"
        raise InputError(f"every number of table {what} must be there once; got {told} twice. Remove one of the rows")
    for by, column in (
        (["run"], "seed"), (["run"], "spec"), *((["run"], label) for label in WHO),
        (list(WHO), "spec"), (["data"], "dataset"), (["data", "encoder"], "method"),
    ):  # fmt: skip
        _agree(rows, by, column, "Name what differs differently")
    _require_seeds(rows)
    for column in SETTINGS:
        _alike(rows, column)
    if "data_fingerprint" in rows:
        _agree(rows, ["data"], "data_fingerprint", "Measure all runs on the same data, or name the data differently")
    if (rows["probe"] == "recall").all():
        queries = rows[rows["direction"] != "both"].rename(columns={"n": "number of queries"})
        advice = "Measure all runs on the same data, or name the data differently"
        _agree(queries, ["data", "direction", "sampling"], "number of queries", advice)


def number(found: Mapping[str, float], runs: Sequence[str], digits: int, notes: Footnotes) -> Cell:
    """Mean and sample deviation (ddof 1) over the runs of one line; a run without a value is named in a footnote.

    found: run -> value of one statistic. runs: who should have one, by seed. No run has a value: a dash.
    """
    if not found:
        return Cell()
    told = [f"not defined in run {run}" for run in runs if run in found and not np.isfinite(found[run])]
    told += [f"missing in run {run}" for run in runs if run not in found]
    values = np.array([found[run] for run in runs if run in found and np.isfinite(found[run])])
    mark = notes.letter(f"{'; '.join(told)}: n = {len(values)}.") if told else ""
    if not len(values):
        return Cell(digits=digits, mark=mark)
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    return Cell(mean=float(values.mean()), std=std, digits=digits, mark=mark)


def absent(rows: pd.DataFrame, wanted: Iterable[object], notes: Footnotes) -> str:
    """The mark of a line that lacks seeds which other lines on the same data have; empty where none is missing."""
    there = set(rows["seed"].dropna())
    gone = [shown(seed) for seed in sorted(set(wanted) - there)]  # type: ignore[type-var]
    if not gone or not there:
        return ""
    who = rows.iloc[0]
    label = ", ".join(str(who[column]) for column in WHO)
    return joined(notes.letter(f"seed {', '.join(gone)} of {label} missing: n = {rows['run'].nunique()}."))


def _own(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts with the objective of the training: the very spec, else the one of its name (its scale may be learnt)."""
    same = rows[rows["objective"].map(name_of) == rows["spec"].map(name_of)]
    exact = same["objective"] == same["spec"]
    rows = same[exact | ~exact.groupby(same["run"]).transform("any").astype(bool)]
    _agree(rows, ["run"], "objective", "Count each run with the objective of its training")
    return rows


def _agree(rows: pd.DataFrame, by: list[str], column: str, advice: str) -> None:
    for key, part in rows.groupby(by, sort=False, observed=True, dropna=False):
        values = part[column].map(shown)
        if values.nunique() > 1:
            told = "; ".join(f"{value} ({_runs(part[values == value])})" for value in values.unique())
            where = ", ".join(map(shown, key))
            raise InputError(f"{column} of {where} must be one; got {told}. {advice}")


def _require_seeds(rows: pd.DataFrame) -> None:
    runs = rows.drop_duplicates("run").to_dict("records")
    require_distinct_seeds((", ".join(shown(run[name]) for name in WHO), str(run["run"]), run["seed"]) for run in runs)


def _alike(rows: pd.DataFrame, column: str) -> None:
    """Several values are told apart in a column, as long as every run has them all."""
    values = rows.groupby("run", sort=False)[column].agg(lambda own: ", ".join(sorted(map(shown, own.unique()))))
    if values.nunique() > 1:
        told = "; ".join(f"{value} ({_listed(list(values.index[values == value]))})" for value in values.unique())
        name = column.replace("_", " ")
        raise InputError(f"{name} of the runs in one table must be the same; got {told}. Measure all runs alike")


def _runs(rows: pd.DataFrame) -> str:
    return _listed(list(rows["run"].unique()))


def _listed(runs: list[str]) -> str:
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return f"{'run' if len(runs) == 1 else 'runs'} {', '.join(runs[:3])}{more}"


def _plain(value: object) -> str | None:
    return None if pd.isna(value) else str(value)  # type: ignore[call-overload]
