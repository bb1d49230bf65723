"""Build the lines of a paper's table: runs of one objective and setting beside the printed row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import NoRows
from lossscope.io.frames import MEMBERS, in_folds
from lossscope.spec import Spec

from . import runs
from ._printed import KEY, NO_LOSS, Key, PrintedTable, key_of, key_of_row, label_of
from ._protocol import choose_protocol, why_apart
from ._summary import format_value, list_values
from .cells import DASH

_LISTED = 8  # systems that a footnote names


@dataclass(frozen=True)
class Line:
    """A line of a table. Either `rows` or `printed` may be empty."""

    data: str  # label
    encoder: str  # label
    objective_label: str
    settings: dict[str, str]  # of eps, batch size and sampling, those that differ within the table
    key: Key  # of the objective
    spec: str  # the objective of the counts, or of the training
    rows: pd.DataFrame  # of our runs
    printed: pd.DataFrame  # of the paper
    apart: str = ""  # why the printed row may not stand beside

    @property
    def block(self) -> tuple[str, ...]:
        """Data, encoder and settings: lines of the same block are compared."""
        return self.data, self.encoder, *self.settings.values()

    @cached_property
    def of_folds(self) -> bool:
        """Whether its numbers are means over folds of a split."""
        return bool(in_folds(self.rows).any())

    @cached_property
    def runs(self) -> list[str]:
        """Names of its runs, by seed."""
        return list(self.rows.sort_values(["seed", "run"])["run"].unique())

    @cached_property
    def _values(self) -> dict[tuple[str, str, str | None], dict[str, float]]:
        values: dict[tuple[str, str, str | None], dict[str, float]] = {}
        columns = (self.rows[name] for name in ("statistic", "direction", "convention", "run", "mean"))
        for statistic, direction, convention, run, mean in zip(*columns, strict=True):
            key = (statistic, direction, None if pd.isna(convention) else convention)
            values.setdefault(key, {})[run] = np.nan if mean is None else float(mean)
        return values

    def values(self, statistic: str, direction: str, convention: str | None) -> dict[str, float]:
        """Return run -> value of a statistic; empty if no run has it."""
        return self._values.get((statistic, direction, convention), {})

    @property
    def parameters(self) -> str:
        """Parameters of the objective: `tau 0.1`; without the two weights of goal, which belong to the key."""
        values = Spec.parse(self.spec).values.items() if self.spec else ()
        shown = [(k, v) for k, v in values if not (self.key[0] == "goal" and k in ("triplet", "pair"))]
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown)


def build_lines(rows: pd.DataFrame, printed: PrintedTable, frame: pd.DataFrame) -> list[Line]:
    """Return the lines of our runs.

    Data and encoders come in order of appearance, objectives in printed order. Objectives that are not printed come
    last, in order of appearance.

    Args:
        rows: of the runs in the table.
        printed: the table in print.
        frame: rows of all runs, for the order of appearance.
    """
    varying = [c for c in runs.SETTINGS if rows[c].map(format_value).nunique() > 1]
    keys = [*runs.LABELS, *varying]
    parts = rows.groupby(keys, sort=False, observed=True, dropna=False)
    lines = [_line(part, dict(zip(keys, map(format_value, key), strict=True)), printed) for key, part in parts]
    sets = _places(frame["data"].map(format_value))
    blocks = _places(zip(frame["data"].map(format_value), frame["encoder"].map(format_value), strict=True))
    order, labels = _places(printed.objectives()), _places(frame["objective_label"].map(format_value))
    return sorted(
        lines,
        key=lambda line: (
            sets[line.data],
            blocks[line.block[:2]],
            order.get(line.key, len(order)),
            labels[line.objective_label],
        ),
    )


def select_rows(
    rows: pd.DataFrame,
    printed: PrintedTable,
    table: str,
    keys: Sequence[Key],
    extra: Callable[[pd.DataFrame], pd.Series[bool]] | None = None,
) -> pd.DataFrame:
    """Return the rows that belong into a table: those of its data sets, or of data without a published name.

    Args:
        rows: of runs.
        printed: the table in print.
        table: its name, for messages.
        keys: the objectives of the table; empty: all objectives.
        extra: selects further rows of other objectives.

    Raises:
        NoRows: no row belongs into the table.
    """
    sets = set(printed.rows["dataset"].dropna())
    selected = rows["dataset"].isna() | rows["dataset"].isin(sets)
    if keys:
        wanted = [key_of(runs.loss_of(row)) in (*keys, NO_LOSS) for row in rows.to_dict("records")]
        of_objectives = pd.Series(wanted, index=rows.index, dtype=bool)
        selected &= of_objectives | extra(rows) if extra else of_objectives
    if not selected.any():
        objectives = " or ".join(label_of(key) for key in keys) or "any objective"
        raise NoRows(
            f"table {table} must have runs of {objectives} on {' or '.join(sorted(sets))} or on data without a "
            f"published name; got {list_values(rows['objective_label'])} on {list_values(rows['dataset'])}. Build "
            "another table"
        )
    kept: pd.DataFrame = rows[selected]
    return choose_protocol(kept, printed.rows) if (kept["probe"] == "recall").all() else kept


def left_out_note(rows: pd.DataFrame, selected: pd.DataFrame) -> list[str]:
    """Return a footnote on runs whose data, models or objectives do not belong into the table."""
    several = rows["encoder"].nunique() > 1
    labels: list[str] = []
    for (data, model), block in rows.groupby(["data", "encoder"], sort=False):
        losses = block["objective_label"].unique()
        out = block.loc[~block["run"].isin(selected["run"]), "objective_label"].unique()
        where = f"{model} on {data}" if several else data
        if 1 < len(out) == len(losses):
            labels.append(f"{where}, {len(out)} losses")
        else:
            labels += [f"{loss}, {where}" if several else f"{loss} on {data}" for loss in out]
    more = [f"{len(labels) - _LISTED} more"] if len(labels) > _LISTED else []
    return [f"Not in this table: {'; '.join([*labels[:_LISTED], *more])}."] if labels else []


def members_note(lines: Sequence[Line]) -> list[str]:
    """Return a footnote on ensembles: which models they average."""
    pairs = [(line.encoder, line.rows[MEMBERS].iloc[0]) for line in lines if MEMBERS in line.rows and len(line.rows)]
    named = dict.fromkeys((encoder, members) for encoder, members in pairs if not pd.isna(members))
    return [f"{encoder} ranks by the mean of the similarities of {members}." for encoder, members in named]


def learnt_parameters_note(rows: pd.DataFrame) -> list[str]:
    """Return a footnote on counts with learnt parameters, which differ from the spec of the objective."""
    counted = rows[(rows["probe"] != "recall") & (rows["objective"] != rows["spec"])].drop_duplicates("run")
    each = [f"{row['run']}: {row['objective']}" for _, row in counted.iterrows()]
    return [f"Counted with the parameters that the checkpoint states: {'; '.join(each)}."] if each else []


def printed_lines(printed: PrintedTable, lines: Sequence[Line]) -> list[Line]:
    """Return the printed rows without a line of ours, in printed order."""
    beside = {index for line in lines for index in line.printed.index}
    settings = dict.fromkeys(lines[0].settings, DASH)
    rest = printed.rows[~printed.rows.index.isin(beside)]
    no_rows = lines[0].rows[:0]
    others = []
    for _, part in rest.groupby(["row_id", "dataset", "method", *KEY], sort=False, dropna=False):
        row, key = part.iloc[0], key_of_row(part.iloc[0])
        data, method = str(row["dataset"]), str(row["method"])
        others.append(Line(data, method, label_of(key), settings, key, "", no_rows, part))
    return others


def _places(values: Iterable[Any]) -> dict[Any, int]:
    """Return value -> its position in order of appearance."""
    return {value: position for position, value in enumerate(dict.fromkeys(values))}


def _line(part: pd.DataFrame, labels: dict[str, str], printed: PrintedTable) -> Line:
    row = part.iloc[0]
    key = key_of(runs.loss_of(row))
    settings = {name: value for name, value in labels.items() if name not in runs.LABELS}
    beside = printed.line(row["dataset"], row["method"], key)
    counted = part["objective"].dropna().unique()
    spec = str(counted[0]) if (part["probe"] != "recall").all() and len(counted) == 1 else runs.loss_of(row) or ""
    apart = why_apart(part, beside)
    beside = beside[:0] if apart else beside
    return Line(labels["data"], labels["encoder"], labels["objective_label"], settings, key, spec, part, beside, apart)
