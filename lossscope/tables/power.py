"""Which difference can n seeds, or n images, show? A table for seeds and a table for images, a line per pair."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from . import _systems
from ._intervals import bracketed, percents
from .base import Table
from .cells import DASH, Cell

REQUIRED = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "over", "pilot_n", "pilot_seeds", "sd",
    "sd_low", "sd_high", "level", "method", "n", "mdd", "difference", "needed", "needed_low", "needed_high",
    "p_better", "p_better_low", "p_better_high", "power", "alpha", "left_out", "note",
)  # fmt: skip
_FEW = 5  # seeds of a pilot: with fewer, the deviation is rough
_OF_SEEDS = (
    "sd: sample standard deviation over seeds of the paired differences, with its chi-square interval, which assumes "
    "normal differences and is too narrow where a training failed. The smallest difference and the number of seeds "
    "needed are as uncertain as sd: {factors}"
)
_OF_IMAGES = (
    "sd: sample standard deviation over {over} of the paired differences (means over the pilot's seeds), with its "
    "percentile bootstrap interval. Another number of seeds changes sd, and so does a larger split, which has more "
    "candidates"
)
_BETTER = (
    "P(A > B): share of seeds in which the system has the larger number (a tie counts half); CI: Clopper-Pearson, "
    "which holds for any distribution"
)


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table over seeds, and a table over images or queries: the smallest difference that each number shows.

    Args:
        frame: result of `lossscope.stats.pilot.plan`.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, REQUIRED, "rows of power")
    if frame.empty:
        raise InputError("table power must have rows; got none. Run `lossscope study power`")
    return [_table(rows, str(over)) for over, rows in frame.groupby("over", sort=False, observed=True)]


def _table(frame: pd.DataFrame, over: str) -> Table:
    rows = _systems.with_metric(frame)
    labels = _systems.label_columns(rows)
    numbers = sorted(map(int, rows["n"].unique()))
    wanted = rows["difference"].dropna().unique()
    columns = [
        *(("", name) for name in labels), ("", f"pilot {over}"), ("", "sd"),
        ("", f"{percents(rows['level'])} CI of sd"),
        *(("smallest difference", f"{n} {over}") for n in numbers),
        *((f"for a difference of {value:g}", f"{over} needed") for value in wanted),
        *([("", "P(A > B)"), ("", "CI of P(A > B)")] if over == "seeds" else []),
    ]  # fmt: skip
    groups = rows.groupby(["metric", "data", "encoder", "system", "baseline"], sort=False, observed=True)
    body = tuple(_line(group, labels, numbers, over) for _, group in groups)
    return Table(f"power_{over}", _caption(rows, labels, over), tuple(columns), body, tuple(_notes(rows, over)))


def _line(rows: pd.DataFrame, labels: Sequence[str], numbers: Sequence[int], over: str) -> tuple[Cell, ...]:
    row, mdd = rows.iloc[0], rows.set_index("n")["mdd"]
    digits = 2 if row["unit"] in ("%", "samples", "queries") else 4
    better = (
        Cell(mean=row["p_better"], digits=2), Cell(text=bracketed(row["p_better_low"], row["p_better_high"], 2)),
    )  # fmt: skip
    return (
        *(Cell(text=str(row[name])) for name in labels),
        Cell(mean=float(row["pilot_n"]), digits=0),
        Cell(mean=row["sd"], digits=digits),
        Cell(text=bracketed(row["sd_low"], row["sd_high"], digits)),
        *(Cell(mean=float(mdd.get(n, float("nan"))), digits=digits) for n in numbers),
        *([Cell(text=_needed(row))] if pd.notna(row["difference"]) else []),
        *(better if over == "seeds" else ()),
    )


def _needed(row: pd.Series) -> str:
    if pd.isna(row["needed"]):
        return DASH
    low, high = (DASH if pd.isna(row[name]) else f"{int(row[name])}" for name in ("needed_low", "needed_high"))
    return f"{int(row['needed'])} [{low}, {high}]"


def _caption(rows: pd.DataFrame, labels: Sequence[str], over: str) -> str:
    same = _systems.shared_labels(rows, labels)
    power, alpha = rows["power"].iloc[0], rows["alpha"].iloc[0]
    of = f" ({', '.join(same)})" if same else ""
    return (
        f"Smallest difference that a number of {over} can show{of}: a two-sided paired t-test at level {alpha:g} finds "
        f"it with probability {power:g}. It follows from the spread of the pilot runs, not from their difference."
    )


def _notes(rows: pd.DataFrame, over: str) -> list[str]:
    """Return notes on the numbers, and on missing ones."""
    alpha = rows["alpha"].iloc[0]
    single = f"For one comparison; for m comparisons corrected by Holm's method, --alpha {alpha:g}/m is always enough"
    if over == "seeds":
        factors = _systems.how_rough(rows[rows["sd"] > 0], "sd", "pilot_n")
        sentences = [_OF_SEEDS.format(factors=factors), *_few(rows), single, _BETTER]
    else:
        sentences = [_OF_IMAGES.format(over=over), single]
    pairs = _systems.pairs_of_notes(rows)
    undefined = [f"{'; '.join(dict.fromkeys(of_note))}: {note}." for note, of_note in pairs.items()]
    return [". ".join(sentences) + ".", *undefined]


def _few(rows: pd.DataFrame) -> list[str]:
    fewest = rows.loc[rows["sd"] > 0, "pilot_n"].min()
    return [f"{int(fewest)} seeds make a rough pilot"] if fewest < _FEW else []
