"""Is a count of the loss or of the model? A matrix for each statistic: counted losses, at the optimum of each loss."""

from __future__ import annotations

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns
from lossscope.stats.transfer import COLUMNS, effect_shares

from ._intervals import bracketed, percents
from .base import Table
from .cells import Cell, decimals

_WHAT = {
    "C_neg": "negatives per query above eps",
    "N_eff": "effective number of negatives",
    "W_neg": "weight of the negatives above eps, per query",
    "share_above": "share of the weight that is above eps",
}
_NOTE = "A loss that is counted at its own optimum is marked with *; papers print these numbers alone."


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table for each statistic, and a table of what is of the loss, of the model and of both.

    Args:
        frame: result of `lossscope.stats.transfer.transfer`.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, COLUMNS, "rows of transfer")
    if frame.empty:
        raise InputError("table transfer must have rows; got none. Run `lossscope analyse transfer`")
    tables = [_matrix(str(name), rows) for name, rows in frame.groupby("statistic", sort=False, observed=True)]
    shares = effect_shares(frame)
    return [*tables, _shares(shares)] if len(shares) else tables


def _matrix(statistic: str, rows: pd.DataFrame) -> Table:
    trained = list(dict.fromkeys(map(str, rows["trained_with"])))
    body = []
    for (direction, objective), of_loss in rows.groupby(["direction", "objective"], sort=False, observed=True):
        cells = {str(row["trained_with"]): _cell(row) for row in of_loss.to_dict("records")}
        labels = (Cell(text=str(direction)), Cell(text=str(objective)))
        body.append((*labels, *(cells.get(name, Cell()) for name in trained)))
    first = rows.iloc[0]
    settings = [f"split {first['split']}"] if pd.notna(first["split"]) else []
    settings += [f"batch size {first['batch_size']:g}"] if pd.notna(first["batch_size"]) else ["all in one batch"]
    settings += [f"{first['sampling']}, seed {first['seed']:g}, eps {first['eps']:g}, unit {first['weight_unit']}"]
    level = f", with {percents(rows['level'])} intervals" if rows["low"].notna().any() else ""
    caption = f"{statistic}, {_WHAT[statistic]}{level}: {'; '.join(settings)}."
    columns = (("", "direction"), ("", "counted"), *(("model trained with", name) for name in trained))
    methods = rows["method"].dropna().unique()
    notes = (_NOTE, *([f"Interval: {'; '.join(methods)}."] if len(methods) else []))
    return Table(f"transfer_{statistic}", caption, columns, tuple(body), notes)


def _cell(row: dict[object, object]) -> Cell:
    """`7.50* [7.16, 7.83]`"""
    mean, low, high = (float(str(row[name])) for name in ("mean", "low", "high"))
    digits = decimals(str(row["unit"]), mean)
    mark = "*" if row["objective"] == row["trained_with"] else ""
    interval = f" {bracketed(low, high, digits)}" if pd.notna(low) else ""
    return Cell(text=f"{mean:z.{digits}f}{mark}{interval}")


def _shares(shares: pd.DataFrame) -> Table:
    body = tuple(
        (
            Cell(text=row["statistic"]), Cell(text=row["direction"]),
            *(Cell(mean=100 * row[name], digits=0) for name in ("of_loss", "of_model", "of_both")),
            Cell(text=f"{row['on_diagonal']:+.2f} ({row['scale']})"),
        )
        for row in shares.to_dict("records")
    )  # fmt: skip
    columns = ("statistic", "direction", "of the loss %", "of the model %", "of both %", "on the diagonal")
    return Table(
        "transfer_shares",
        "Shares of the differences (sums of squares) that are of the counted loss, of the model, and of neither alone.",
        tuple(("", name) for name in columns),
        body,
        ("On the diagonal: the mean of what loss and model do not say alone, where a loss meets its own model.",),
    )
