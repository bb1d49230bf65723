"""Combine rows of many runs in one table: check that they are comparable, and average over seeds.

Besides the columns of summary rows, a row has run (unique name), data, encoder and objective_label (labels), spec (the
objective of the training, in full, None where no loss is stated), dataset and method (names of data and encoder in
published tables, or None). Rows of an evaluation file get these columns from their sources (`from_sources`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import EPOCHS, OPTIONAL, SUMMARY, USED, in_folds, require_columns
from lossscope.stats.naming import require_distinct_seeds

from ._footnotes import Footnotes, join_marks
from ._summary import format_value, name_of, no_rows, whole_splits
from .cells import DASH, Cell

APART = "Not beside ours"  # start of a footnote on printed numbers that ours cannot be compared with
_TESTS = ("test split", "testall split")
LABELS = ("data", "encoder", "objective_label")
SETTINGS = ("eps", "batch_size", "sampling")
COLUMNS = (*(c for c in SUMMARY if c not in OPTIONAL), "run", *LABELS, "spec", "dataset", "method")
_NUMBER = ("run", "objective", "direction", "probe", "statistic", "convention", *SETTINGS)  # identify a number


def select_probe(frame: pd.DataFrame, probe: str, table: str) -> pd.DataFrame:
    """Return the rows of `recall` on whole splits, or of another probe with the objective of the training.

    Args:
        frame: rows of runs.
        probe: name of the probe.
        table: its name, for messages.

    Raises:
        InputError: columns or labels are missing.
        NoRows: the probe has no rows.
    """
    require_columns(frame, COLUMNS, "rows of runs")
    for column in ("run", *LABELS):
        if frame[column].isna().any():
            raise InputError(f"{column} must have a value in every row of a run; some rows have none. Name every run")
    rows = frame[frame["probe"] == probe]
    rows = whole_splits(rows) if probe == "recall" else _with_own_objective(rows)
    if rows.empty:
        raise no_rows(table, probe, frame, ", counted with the objective of the training")
    texts = ("dataset", "method", "convention", "spec")
    rows = rows.reset_index(drop=True)
    return rows.assign(**{column: rows[column].map(_text_or_none) for column in texts})


def from_sources(
    frame: pd.DataFrame, dataset: str | None = None, models: Mapping[str, str] | str | None = None
) -> pd.DataFrame:
    """Return rows of an evaluation file with the columns of runs: each source is a run; rows of runs as they are.

    Args:
        frame: summary rows.
        dataset: name of the data in published tables.
        models: name of the model in published tables, of every source or source -> name.
    """
    if "run" in frame or not {"source", "objective"} <= set(frame.columns):
        return frame
    used = frame[USED] if USED in frame else pd.Series(None, index=frame.index, dtype=object)
    sources = list(map(str, frame["source"]))
    names = dict.fromkeys(sources, models) if isinstance(models, str) else models or {}
    return frame.rename(columns={"method": "interval_method"}).assign(
        run=frame["source"],
        data=dataset or used.fillna("data of the file"),
        encoder=[names.get(source, source) for source in sources],
        objective_label=frame["objective"].fillna(DASH),
        spec=frame["objective"],
        dataset=dataset,
        method=pd.Series([names.get(source) for source in sources], index=frame.index, dtype=object),
    )


def loss_of(row: Mapping[Any, Any] | pd.Series[Any]) -> str | None:
    """Return the objective that a run was trained with; None where none is stated, or the model is as it came."""
    spec, epochs = row["spec"], row.get(EPOCHS)
    return None if pd.isna(spec) or epochs == 0 else str(spec)


def is_other_data(data: str, dataset: str) -> bool:
    """Return whether a label names another data set: `Flickr30k, 1K test` is flickr30k, `COCO` is mscoco."""
    label = re.sub(r"[^a-z0-9 ]", "", data.lower())
    return not label.startswith((dataset, dataset.removeprefix("ms")))


def require_comparable(rows: pd.DataFrame, table: str) -> None:
    """Raise InputError, with values and runs, for rows that would make a wrong number.

    The reasons are: a repeated number, a repeated seed, one label for two specs, data sets or models, and runs with
    other data, eps, batch size or sampling than the other runs.
    """
    twice = rows[rows.duplicated(list(_NUMBER))]
    if len(twice):
        row = twice.iloc[0]
        number = f"{row['run']}, {row['direction']} {row['statistic']}, {format_value(row['convention'])}"
        raise InputError(f"every number of table {table} must occur once; got {number} twice. Remove one of the rows")
    for by, column in (
        (["run"], "seed"), (["run"], "spec"), *((["run"], label) for label in LABELS),
        (list(LABELS), "spec"), (["data"], "dataset"), (["data", "encoder"], "method"),
    ):  # fmt: skip
        _require_one_value(rows, by, column, "Give different things different names")
    _require_seeds(rows)
    for column in SETTINGS:
        _require_same_values(_without_folds(rows) if column == "sampling" else rows, column)
    for _, part in rows.groupby("data", sort=False):
        _require_same_values(part, "sampling")
    advice = "Evaluate all runs on the same data, or name the data differently"
    if "data_fingerprint" in rows:
        _require_one_value(rows, ["data"], "data_fingerprint", advice)
    if (rows["probe"] == "recall").all():
        queries = rows[rows["direction"] != "both"].rename(columns={"n": "number of queries"})
        _require_one_value(queries, ["data", "direction", "sampling"], "number of queries", advice)


def mean_cell(values: Mapping[str, float], runs: Sequence[str], digits: int, notes: Footnotes) -> Cell:
    """Return mean and sample deviation (ddof 1) over runs; a footnote names runs without a value.

    Args:
        values: run -> value of a statistic; empty: a dash.
        runs: the expected runs, by seed.
        digits: decimals.
        notes: the footnotes.
    """
    if not values:
        return Cell()
    gaps = [f"not defined in run {run}" for run in runs if run in values and not np.isfinite(values[run])]
    gaps += [f"missing in run {run}" for run in runs if run not in values]
    finite = np.array([values[run] for run in runs if run in values and np.isfinite(values[run])])
    mark = notes.letter(f"{'; '.join(gaps)}: n = {len(finite)}.") if gaps else ""
    if not len(finite):
        return Cell(digits=digits, mark=mark)
    std = float(finite.std(ddof=1)) if len(finite) > 1 else None
    return Cell(mean=float(finite.mean()), std=std, digits=digits, mark=mark)


def missing_seeds_mark(rows: pd.DataFrame, expected: Iterable[object], notes: Footnotes) -> str:
    """Return the mark of a line that lacks seeds of other lines on the same data; empty if none is missing."""
    seeds = set(rows["seed"].dropna())
    missing = [format_value(seed) for seed in sorted(set(expected) - seeds)]  # type: ignore[type-var]
    if not missing or not seeds:
        return ""
    first = rows.iloc[0]
    label = ", ".join(str(first[column]) for column in LABELS)
    return join_marks(notes.letter(f"seed {', '.join(missing)} of {label} missing: n = {rows['run'].nunique()}."))


def _with_own_objective(rows: pd.DataFrame) -> pd.DataFrame:
    """Return counts with the objective of the training: the same spec, else the same name (the scale may be learnt)."""
    trained = rows[rows["spec"].notna()]
    same_name = trained[trained["objective"].map(name_of) == trained["spec"].map(name_of)]
    exact = same_name["objective"] == same_name["spec"]
    rows = same_name[exact | ~exact.groupby(same_name["run"]).transform("any").astype(bool)]
    _require_one_value(rows, ["run"], "objective", "Count each run with the objective of its training")
    return rows


def _require_one_value(rows: pd.DataFrame, by: list[str], column: str, advice: str) -> None:
    """Raise InputError if rows that agree in `by` have several values of a column."""
    for key, part in rows.groupby(by, sort=False, observed=True, dropna=False):
        values = part[column].map(format_value)
        if values.nunique() > 1:
            each = "; ".join(f"{value} ({_runs_of(part[values == value])})" for value in values.unique())
            where = ", ".join(map(format_value, key))
            raise InputError(f"{column} of {where} must be one; got {each}. {advice}")


def _without_folds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of whole splits, all test splits under one name: COCO's whole one is testall (precomp)."""
    whole = rows[~in_folds(rows)]
    named = whole["sampling"].astype(object).where(~whole["sampling"].isin(_TESTS), _TESTS[0])
    return whole.assign(sampling=named)


def _require_seeds(rows: pd.DataFrame) -> None:
    runs = rows.drop_duplicates("run").to_dict("records")
    require_distinct_seeds(
        (", ".join(format_value(run[name]) for name in LABELS), str(run["run"]), run["seed"]) for run in runs
    )


def _require_same_values(rows: pd.DataFrame, column: str) -> None:
    """Raise InputError unless every run has the same values of a column; each value is a line of the table."""
    values = rows.groupby("run", sort=False)[column].agg(
        lambda of_run: ", ".join(sorted(map(format_value, of_run.unique())))
    )
    if values.nunique() > 1:
        each = "; ".join(f"{value} ({_list_runs(list(values.index[values == value]))})" for value in values.unique())
        name = column.replace("_", " ")
        raise InputError(f"{name} of the runs in one table must be the same; got {each}. Evaluate all runs alike")


def _runs_of(rows: pd.DataFrame) -> str:
    return _list_runs(list(rows["run"].unique()))


def _list_runs(runs: list[str]) -> str:
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return f"{'run' if len(runs) == 1 else 'runs'} {', '.join(runs[:3])}{more}"


def _text_or_none(value: object) -> str | None:
    return None if pd.isna(value) else str(value)  # type: ignore[call-overload]
