"""Are the differences between systems more than chance? Tests over images and over seeds, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._specs import KINDS, shorten
from .base import Table
from .cells import DASH, MINUS, Cell

REQUIRED = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "difference", "images", "ci_low",
    "ci_high", "p_images_holm", "p_at_floor", "d_images", "seeds", "n_seeds", "sd_seeds", "p_t_holm", "p_flips_holm",
    "d_seeds", "family", "family_seeds", "left_out", "note", "resamples", "seed", "level",
)  # fmt: skip
_HEADINGS = {"data": "data", "encoder": "encoder", "metric": "metric", "system": "system", "baseline": "baseline"}
_MAX_DECIMALS = 8  # of a p
_UNITS = {"images": "image", "queries": "query", "images or queries": "unit"}
_SEEDS = (
    "p (t): paired t-test over seeds; p (flips): sign flips over seeds, at least 0.25 with 3 of them and 0.0625 with 5."
)


def build(frame: pd.DataFrame) -> Table:
    """Return a row per metric and pair of systems; difference = system − baseline.

    Differences are in points of per cent, or of [0, 1] for MRR, gains and precisions. What is resampled is the image
    with its captions; of other sides, the query.

    Args:
        frame: result of `lossscope.stats.compare.compare`.

    Raises:
        InputError: columns or rows are missing.
    """
    _require_comparisons(frame)
    rows = frame.assign(metric=_metrics(frame))
    labels = [name for name in _HEADINGS if name in ("system", "baseline") or rows[name].nunique() > 1]
    level, units = _percent(rows), _units(rows)
    headers = [
        *(("", _HEADINGS[name]) for name in labels), ("", "difference"),
        (units, f"{level} CI"), (units, "p"), (units, "d"),
        ("seeds", "difference"), ("seeds", "p (t)"), ("seeds", "p (flips)"), ("seeds", "d"), ("seeds", "n"),
    ]  # fmt: skip
    body = tuple(_line(row, labels) for _, row in rows.iterrows())
    notes = (*_method_notes(rows), *_undefined_notes(rows))
    hidden = ("seeds n",) if _one_seed(rows) else ()
    return Table("comparison", _caption(rows, labels), tuple(headers), body, notes, hidden=hidden)


def _line(row: pd.Series, labels: Sequence[str]) -> tuple[Cell, ...]:
    digits = 2 if row["unit"] == "%" else 4
    undefined = pd.isna(row["ci_low"])
    interval = f"[{row['ci_low']:z.{digits}f}, {row['ci_high']:z.{digits}f}]".replace("-", MINUS)
    over_seeds = row["difference"] if row["n_seeds"] > 1 else None
    return (
        *(Cell(text=str(row[name])) for name in labels),
        Cell(mean=row["difference"], digits=digits),
        Cell(text=DASH if undefined else interval),
        _p(row["p_images_holm"], bool(row["p_at_floor"])),
        Cell(mean=row["d_images"], digits=2),
        Cell(mean=over_seeds, std=row["sd_seeds"], digits=digits),
        _p(row["p_t_holm"]),
        _p(row["p_flips_holm"]),
        Cell(mean=row["d_seeds"], digits=2),
        Cell(mean=float(row["n_seeds"]), digits=0),
    )


def _p(value: float, at_floor: bool = False) -> Cell:
    """Return a p with enough decimals not to be printed as 0; `≤ 0.0072` where no resample was as extreme."""
    digits = 4
    while digits < _MAX_DECIMALS and value < 10.0**-digits:
        digits += 1
    return Cell(mean=value, digits=digits, at_most=at_floor)


def _caption(rows: pd.DataFrame, labels: Sequence[str]) -> str:
    same = [_shared(rows, name) for name in ("data", "encoder", "metric") if name not in labels]
    sizes = _span(rows["family"]), _span(rows["family_seeds"])
    family = f"{sizes[0]} comparison{'' if sizes[0] == '1' else 's'} of a metric" + (
        "" if sizes[0] == sizes[1] or _one_seed(rows) else f" ({sizes[1]} over seeds)"
    )
    parts = [
        f"Differences between systems: {', '.join(same)}" if same else "Differences between systems",
        f"paired over n = {_span(rows['images'])} {_units(rows)} (permutation test and bootstrap, "
        f"{_span(rows['resamples'])} resamples, seed {_span(rows['seed'])}){_tested_seeds(rows)}",
        f"p corrected by Holm over {family}",
        f"CI {_percent(rows)}, over {_units(rows)}, not corrected",
        *_deviation(rows),
    ]
    return "; ".join(parts) + "."


def _one_seed(rows: pd.DataFrame) -> bool:
    """Return whether no pair of systems has two seeds, so that nothing is averaged or tested over seeds."""
    return bool(rows["n_seeds"].max() <= 1)


def _tested_seeds(rows: pd.DataFrame) -> str:
    seeds = "; ".join(text for text in dict.fromkeys(rows["seeds"]) if text)
    if _one_seed(rows):
        return f"; one training of each, seed {seeds}" if seeds else ""
    return f" and over seeds {seeds or '–'} (t-test, sign flips)"


def _deviation(rows: pd.DataFrame) -> list[str]:
    """Return what ± is: nothing with one seed, and with two only their distance."""
    if _one_seed(rows):
        return []
    two = ", which of two is 0.71 times their distance" if (rows["n_seeds"] == 2).any() else ""
    return [f"mean ± sample standard deviation over seeds{two}"]


def _method_notes(rows: pd.DataFrame) -> list[str]:
    """Return what the tests are, those over seeds where there are several."""
    units, several = _units(rows), not _one_seed(rows)
    flipped = f"paired permutation test, the sign of each {_UNITS[units]}'s difference flipped"
    sentences = [f"p, {units}: {flipped}; CI: percentile bootstrap over {units}."]
    averaged = ["values are averaged over seeds first"] if several else []
    if "images" in units:
        sentences.append("; ".join(["An image goes with all its captions", *averaged]) + ".")
    elif several:
        sentences.append(f"{averaged[0].capitalize()}.")
    over = f"{units} or over seeds" if several else units
    sentences.append(f"d: mean / standard deviation of the paired differences (d_z), over {over}.")
    return [" ".join([*sentences, _SEEDS] if several else sentences)]


def _units(rows: pd.DataFrame) -> str:
    """Return what is resampled."""
    images = rows["direction"].isin(["i2t", "t2i", "both"])
    return "images" if images.all() else "images or queries" if images.any() else "queries"


def _shared(rows: pd.DataFrame, name: str) -> str:
    """Return the value that all rows have, a spec in its short form."""
    value = str(rows[name].iloc[0])
    return shorten([value], KINDS[name]).get(value, value) if name in KINDS else value


def _undefined_notes(rows: pd.DataFrame) -> list[str]:
    """Return footnotes on undefined numbers, and on runs without a partner."""
    pairs_of_note: dict[str, list[str]] = {}
    for column, start in (("note", ""), ("left_out", "left out: ")):
        for _, row in rows[rows[column] != ""].iterrows():
            pairs = pairs_of_note.setdefault(f"{start}{row[column]}", [])
            pairs.append(f"{row['system']} against {row['baseline']}")
    return [
        f"{'All pairs' if len(pairs) == len(rows) > 1 else '; '.join(dict.fromkeys(pairs))}: {note}."
        for note, pairs in pairs_of_note.items()
    ]


def _metrics(rows: pd.DataFrame) -> list[str]:
    pairs = zip(rows["direction"], rows["statistic"], strict=True)
    return [statistic if direction == "both" else f"{direction} {statistic}" for direction, statistic in pairs]


def _percent(rows: pd.DataFrame) -> str:
    return " and ".join(f"{100 * level:g} %" for level in sorted(rows["level"].unique()))


def _span(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def _require_comparisons(frame: pd.DataFrame) -> None:
    require_columns(frame, REQUIRED, "comparison rows")
    if frame.empty:
        raise InputError("table comparison must have rows; got none. Run `lossscope compare`")
