"""Which lines has a table: whose runs, in which setting, beside which printed row?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import NoRows
from lossscope.spec import Spec

from . import runs
from ._printed import KEY, Key, Printed, key_of, keyed, label_of
from ._summary import listed, shown
from .cells import DASH


@dataclass(frozen=True)
class Line:
    """One line. settings: those that differ within the table. rows: of our runs; printed: of the paper. Either may be
    empty. spec: the objective as it was counted, or trained."""

    data: str
    encoder: str
    objective_label: str
    settings: dict[str, str]
    key: Key
    spec: str
    rows: pd.DataFrame
    printed: pd.DataFrame

    @property
    def block(self) -> tuple[str, ...]:
        """Lines of one block compete: the same data, encoder and setting."""
        return self.data, self.encoder, *self.settings.values()

    @cached_property
    def runs(self) -> list[str]:
        """Names of its runs, by seed."""
        return list(self.rows.sort_values(["seed", "run"])["run"].unique())

    @cached_property
    def _numbers(self) -> dict[tuple[str, str, str | None], dict[str, float]]:
        found: dict[tuple[str, str, str | None], dict[str, float]] = {}
        columns = (self.rows[name] for name in ("statistic", "direction", "convention", "run", "mean"))
        for statistic, direction, convention, run, mean in zip(*columns, strict=True):
            known = None if pd.isna(convention) else convention
            found.setdefault((statistic, direction, known), {})[run] = np.nan if mean is None else float(mean)
        return found

    def found(self, statistic: str, direction: str, convention: str | None) -> dict[str, float]:
        """The value of each run; empty where none has such a statistic."""
        return self._numbers.get((statistic, direction, convention), {})

    @property
    def parameters(self) -> str:
        """What the objective was given: `tau 0.1`; of goal without the two weights, which name the line."""
        values = Spec.parse(self.spec).values.items() if self.spec else ()
        kept = [(k, v) for k, v in values if not (self.key[0] == "goal" and k in ("triplet", "pair"))]
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in kept)


def lines(rows: pd.DataFrame, printed: Printed, frame: pd.DataFrame) -> list[Line]:
    """The lines of our runs: data and encoders as they first appear in the whole frame, objectives in printed order.

    Objectives that are not printed come last, as they first appear.
    """
    varying = [c for c in runs.SETTINGS if rows[c].map(shown).nunique() > 1]
    keys = [*runs.WHO, *varying]
    parts = rows.groupby(keys, sort=False, observed=True, dropna=False)
    found = [_line(part, dict(zip(keys, map(shown, key), strict=True)), printed) for key, part in parts]
    blocks = _places(zip(frame["data"].map(shown), frame["encoder"].map(shown), strict=True))
    order, labels = _places(printed.objectives()), _places(frame["objective_label"].map(shown))
    return sorted(
        found, key=lambda line: (blocks[line.block[:2]], order.get(line.key, len(order)), labels[line.objective_label])
    )


def belonging(
    rows: pd.DataFrame,
    printed: Printed,
    what: str,
    keys: Sequence[Key],
    also: Callable[[pd.DataFrame], pd.Series[bool]] | None = None,
) -> pd.DataFrame:
    """Rows of the data sets of a printed table, or of data that has no published name, and of some objectives.

    No key: of any objective. also: rows of others that belong too. Raises InputError naming what there is.
    """
    sets = set(printed.rows["dataset"].dropna())
    fit = rows["dataset"].isna() | rows["dataset"].isin(sets)
    if keys:
        named = rows["spec"].map(lambda spec: key_of(spec) in keys)
        fit &= named | also(rows) if also else named
    if not fit.any():
        wanted = " or ".join(label_of(key) for key in keys) or "any objective"
        raise NoRows(
            f"table {what} must have runs of {wanted} on {' or '.join(sorted(sets))} or on data without a "
            f"published name; got {listed(rows['objective_label'])} on {listed(rows['dataset'])}. Build another table"
        )
    return rows[fit]


def left_out(rows: pd.DataFrame, kept: pd.DataFrame) -> list[str]:
    """A footnote on runs of the same objectives that are of other data or models than the table."""
    gone = rows[~rows["run"].isin(kept["run"]) & rows["spec"].isin(kept["spec"])]
    labels = dict.fromkeys(
        f"{row['objective_label']} on {row['data']}" for _, row in gone.drop_duplicates("run").iterrows()
    )
    return [f"Not in this table: {', '.join(labels)}."] if labels else []


def learnt(rows: pd.DataFrame) -> list[str]:
    """A footnote on counts with an objective whose parameters are not those it was trained with at first."""
    counted = rows[(rows["probe"] != "recall") & (rows["objective"] != rows["spec"])].drop_duplicates("run")
    told = [f"{row['run']}: {row['objective']}" for _, row in counted.iterrows()]
    return [f"Counted with the parameters that the checkpoint states: {'; '.join(told)}."] if told else []


def without_runs(printed: Printed, found: Sequence[Line]) -> list[Line]:
    """The printed rows that no line of ours stands beside, in printed order."""
    beside = {place for line in found for place in line.printed.index}
    settings = dict.fromkeys(found[0].settings, DASH)
    rest = printed.rows[~printed.rows.index.isin(beside)]
    empty = found[0].rows[:0]
    made = []
    for _, part in rest.groupby(["row_id", "dataset", "method", *KEY], sort=False, dropna=False):
        row, key = part.iloc[0], keyed(part.iloc[0])
        data, method = str(row["dataset"]), str(row["method"])
        made.append(Line(data, method, label_of(key), settings, key, "", empty, part))
    return made


def _places(values: Iterable[Any]) -> dict[Any, int]:
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _line(part: pd.DataFrame, words: dict[str, str], printed: Printed) -> Line:
    row = part.iloc[0]
    key = key_of(str(row["spec"]))
    settings = {name: value for name, value in words.items() if name not in runs.WHO}
    beside = printed.line(row["dataset"], row["method"], key)
    counted = part["objective"].dropna().unique()
    spec = str(counted[0]) if (part["probe"] != "recall").all() and len(counted) == 1 else str(row["spec"])
    return Line(words["data"], words["encoder"], words["objective_label"], settings, key, spec, part, beside)
