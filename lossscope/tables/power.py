"""Which difference can n seeds, and n images, show? A line per pair of systems, a table of seeds and one of images."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._specs import KINDS, shorten
from .base import Table
from .cells import DASH, MINUS, Cell

REQUIRED = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "over", "pilot_n", "pilot_seeds", "sd",
    "sd_low", "sd_high", "level", "method", "n", "mdd", "difference", "needed", "needed_low", "needed_high",
    "p_better", "p_better_low", "p_better_high", "power", "alpha", "left_out", "note",
)  # fmt: skip
_LABELS = ("data", "encoder", "metric", "system", "baseline")
_FEW = 5  # seeds of a pilot: a deviation of fewer is rough
_OF_SEEDS = (
    "sd: sample standard deviation over seeds of the paired differences, with its chi-square interval, which trusts "
    "that they are normal and is too narrow where a training failed. A smallest difference and a number of seeds "
    "needed are as uncertain as sd: {factors}"
)
_OF_IMAGES = (
    "sd: sample standard deviation over {over} of the paired differences, means over the pilot's seeds; with its "
    "percentile bootstrap interval. Another number of seeds has another sd, and so has a larger split, which has more "
    "candidates"
)
_BETTER = (
    "P(A > B): share of the seeds in which the system has the larger number, a tie counting half; CI: Clopper-Pearson, "
    "which holds for any distribution"
)


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table over seeds, and one over images or queries: the smallest difference that each number can show.

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
    rows = frame.assign(metric=_metrics(frame))
    labels = [name for name in _LABELS if name in ("system", "baseline") or rows[name].nunique() > 1]
    numbers = sorted(map(int, rows["n"].unique()))
    wanted = rows["difference"].dropna().unique()
    columns = [
        *(("", name) for name in labels), ("", f"pilot {over}"), ("", "sd"), ("", f"{_percent(rows)} CI of sd"),
        *(("smallest difference", f"{n} {over}") for n in numbers),
        *((f"for a difference of {value:g}", f"{over} needed") for value in wanted),
        *([("", "P(A > B)"), ("", "CI of P(A > B)")] if over == "seeds" else []),
    ]  # fmt: skip
    groups = rows.groupby(["metric", "data", "encoder", "system", "baseline"], sort=False, observed=True)
    body = tuple(_line(own, labels, numbers, over) for _, own in groups)
    return Table(f"power_{over}", _caption(rows, labels, over), tuple(columns), body, tuple(_notes(rows, over)))


def _line(own: pd.DataFrame, labels: Sequence[str], numbers: Sequence[int], over: str) -> tuple[Cell, ...]:
    row, mdd = own.iloc[0], own.set_index("n")["mdd"]
    digits = 2 if row["unit"] in ("%", "samples", "queries") else 4
    better = (
        Cell(mean=row["p_better"], digits=2), Cell(text=_interval(row["p_better_low"], row["p_better_high"], 2)),
    )  # fmt: skip
    return (
        *(Cell(text=str(row[name])) for name in labels),
        Cell(mean=float(row["pilot_n"]), digits=0),
        Cell(mean=row["sd"], digits=digits),
        Cell(text=_interval(row["sd_low"], row["sd_high"], digits)),
        *(Cell(mean=float(mdd.get(n, float("nan"))), digits=digits) for n in numbers),
        *([Cell(text=_needed(row))] if pd.notna(row["difference"]) else []),
        *(better if over == "seeds" else ()),
    )


def _interval(low: float, high: float, digits: int) -> str:
    return DASH if pd.isna(low) else f"[{low:z.{digits}f}, {high:z.{digits}f}]".replace("-", MINUS)


def _needed(row: pd.Series) -> str:
    if pd.isna(row["needed"]):
        return DASH
    low, high = (DASH if pd.isna(row[name]) else f"{int(row[name])}" for name in ("needed_low", "needed_high"))
    return f"{int(row['needed'])} [{low}, {high}]"


def _caption(rows: pd.DataFrame, labels: Sequence[str], over: str) -> str:
    same = [_shared(rows, name) for name in ("data", "encoder", "metric") if name not in labels]
    power, alpha = rows["power"].iloc[0], rows["alpha"].iloc[0]
    of = f" ({', '.join(same)})" if same else ""
    return (
        f"Smallest difference that a number of {over} can show{of}: found with probability {power:g} by a two-sided "
        f"paired t-test at level {alpha:g}, by the spread of the pilot runs, whatever their own difference."
    )


def _notes(rows: pd.DataFrame, over: str) -> list[str]:
    """Return what the numbers are, and why some are missing."""
    alpha = rows["alpha"].iloc[0]
    one = f"For one comparison; of m that Holm's method corrects together, --alpha {alpha:g}/m is sure to be enough"
    if over == "seeds":
        sentences = [_OF_SEEDS.format(factors=_factors(rows)), *_few(rows), one, _BETTER]
    else:
        sentences = [_OF_IMAGES.format(over=over), one]
    pairs_of_note: dict[str, list[str]] = {}
    for column, start in (("note", ""), ("left_out", "left out: ")):
        for row in rows[[isinstance(text, str) and text != "" for text in rows[column]]].to_dict("records"):
            pairs_of_note.setdefault(f"{start}{row[column]}", []).append(f"{row['system']} against {row['baseline']}")
    undefined = [f"{'; '.join(dict.fromkeys(pairs))}: {note}." for note, pairs in pairs_of_note.items()]
    return [". ".join(sentences) + ".", *undefined]


def _factors(rows: pd.DataFrame) -> str:
    """Return how many times sd its interval is: `0.52 to 6.28 times with 3 seeds`."""
    known = rows[rows["sd"] > 0].drop_duplicates("pilot_n").sort_values("pilot_n")
    return ", ".join(
        f"{row['sd_low'] / row['sd']:.2f} to {row['sd_high'] / row['sd']:.2f} times with {int(row['pilot_n'])}"
        for row in known.to_dict("records")
    )


def _few(rows: pd.DataFrame) -> list[str]:
    fewest = rows.loc[rows["sd"] > 0, "pilot_n"].min()
    return [f"{int(fewest)} seeds make a rough pilot"] if fewest < _FEW else []


def _metrics(rows: pd.DataFrame) -> list[str]:
    pairs = zip(rows["direction"], rows["statistic"], strict=True)
    return [statistic if direction == "both" else f"{direction} {statistic}" for direction, statistic in pairs]


def _shared(rows: pd.DataFrame, name: str) -> str:
    """Return the value that all rows have, a spec in its short form."""
    value = str(rows[name].iloc[0])
    return shorten([value], KINDS[name]).get(value, value) if name in KINDS else value


def _percent(rows: pd.DataFrame) -> str:
    return " and ".join(f"{100 * level:g} %" for level in sorted(rows["level"].unique()))
