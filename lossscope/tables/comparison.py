"""Are the differences between systems larger than chance? Tests over images and over seeds, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns
from lossscope.stats.naming import NO_SEED

from . import _systems
from ._intervals import bracketed, percents
from .base import Table
from .cells import Cell

REQUIRED = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "difference", "images", "sd_images",
    "ci_low", "ci_high", "p_images_holm", "p_at_floor", "d_images", "mdd_images", "seeds", "n_seeds", "sd_seeds",
    "p_t_holm", "p_flips_holm", "d_seeds", "mdd_seeds", "mdd_seeds_low", "mdd_seeds_high", "p_better", "p_better_low",
    "p_better_high", "family", "family_seeds", "left_out", "note", "resamples", "seed", "level", "power", "alpha",
)  # fmt: skip
_MAX_DECIMALS = 8  # of a p
_UNITS = {"images": "image", "queries": "query", "images or queries": "unit"}
_SEEDS = (
    "p (t): paired t-test over seeds; p (flips): sign flips over seeds, at least 0.25 with 3 seeds and 0.0625 with 5."
)

_BETTER = (
    "P(A > B): share of seeds in which the system is better than the baseline (a tie counts half), with its "
    "Clopper-Pearson interval."
)


def build(frame: pd.DataFrame) -> Table:
    """Return a row per metric and pair of systems; difference = system − baseline.

    Differences are in points of per cent, or of [0, 1] for MRR, gains and precisions. Tests resample images with their
    captions; for other sides, queries.

    Args:
        frame: result of `lossscope.stats.compare.compare`.

    Raises:
        InputError: columns or rows are missing.
    """
    _require_comparisons(frame)
    rows = _systems.with_metric(frame)
    labels = _systems.label_columns(rows)
    level, units = percents(rows["level"]), _units(rows)
    headers = [
        *(("", name) for name in labels), ("", "difference"),
        (units, f"{level} CI"), (units, "p"), (units, "d"), (units, "MDD"),
        ("seeds", "difference"), ("seeds", "p (t)"), ("seeds", "p (flips)"), ("seeds", "d"), ("seeds", "MDD"),
        ("seeds", "P(A > B)"), ("seeds", "CI of P(A > B)"), ("seeds", "n"),
    ]  # fmt: skip
    body = tuple(_line(row, labels) for _, row in rows.iterrows())
    notes = (*_method_notes(rows), *_undefined_notes(rows))
    hidden = ("seeds n",) if _one_seed(rows) else ()
    return Table("comparison", _caption(rows, labels), tuple(headers), body, notes, hidden=hidden)


def _line(row: pd.Series, labels: Sequence[str]) -> tuple[Cell, ...]:
    digits = 2 if row["unit"] == "%" else 4
    over_seeds = row["difference"] if row["n_seeds"] > 1 else None
    return (
        *(Cell(text=str(row[name])) for name in labels),
        Cell(mean=row["difference"], digits=digits),
        Cell(text=bracketed(row["ci_low"], row["ci_high"], digits)),
        _p(row["p_images_holm"], bool(row["p_at_floor"])),
        Cell(mean=row["d_images"], digits=2),
        _mdd(row["mdd_images"], row["p_images_holm"], row["alpha"], digits),
        Cell(mean=over_seeds, std=row["sd_seeds"], digits=digits),
        _p(row["p_t_holm"]),
        _p(row["p_flips_holm"]),
        Cell(mean=row["d_seeds"], digits=2),
        _mdd(row["mdd_seeds"], row["p_t_holm"], row["alpha"], digits),
        Cell(mean=row["p_better"], digits=2),
        _of_better(row),
        Cell(mean=float(row["n_seeds"]), digits=0),
    )


def _of_better(row: pd.Series) -> Cell:
    """Return the interval of P(A > B); a missing cell without seeds, so that the column can be hidden."""
    low, high = row["p_better_low"], row["p_better_high"]
    return Cell() if pd.isna(low) else Cell(text=bracketed(low, high, 2))


def _mdd(mdd: float, p: float, alpha: float, digits: int) -> Cell:
    """Return the minimum detectable difference if the test found none: p above α."""
    return Cell(mean=mdd, digits=digits) if p > alpha else Cell()


def _p(value: float, at_floor: bool = False) -> Cell:
    """Return a p with enough decimals not to print as 0; `≤ 0.0072` if no resample was as extreme."""
    digits = 4
    while digits < _MAX_DECIMALS and value < 10.0**-digits:
        digits += 1
    return Cell(mean=value, digits=digits, at_most=at_floor)


def _caption(rows: pd.DataFrame, labels: Sequence[str]) -> str:
    same = _systems.shared_labels(rows, labels)
    sizes = _span(rows["family"]), _span(rows["family_seeds"])
    family = f"{sizes[0]} comparison{'' if sizes[0] == '1' else 's'} of a metric" + (
        "" if sizes[0] == sizes[1] or _one_seed(rows) else f" ({sizes[1]} over seeds)"
    )
    parts = [
        f"Differences, system − baseline: {', '.join(same)}" if same else "Differences, system − baseline",
        f"paired over n = {_span(rows['images'])} {_units(rows)} (permutation test and bootstrap, "
        f"{_span(rows['resamples'])} resamples, seed {_span(rows['seed'])}){_tested_seeds(rows)}",
        f"p corrected by Holm over {family}",
        f"CI {percents(rows['level'])}, over {_units(rows)}, not corrected",
        *_deviation(rows),
    ]
    return "; ".join(parts) + "."


def _one_seed(rows: pd.DataFrame) -> bool:
    """Return whether no pair of systems has two seeds, so that nothing is averaged or tested over seeds."""
    return bool(rows["n_seeds"].max() <= 1)


def _tested_seeds(rows: pd.DataFrame) -> str:
    seeds = "; ".join(text for text in dict.fromkeys(rows["seeds"].dropna().map(str)) if text)
    if _one_seed(rows):
        known = f"seed {seeds}" if seeds != NO_SEED else "of unknown seed"
        return f"; one run each, {known}" if seeds else ""
    return f" and over seeds {seeds or '–'} (t-test, sign flips)"


def _deviation(rows: pd.DataFrame) -> list[str]:
    """Return the meaning of ±; empty for one seed."""
    if _one_seed(rows):
        return []
    two = " (with two seeds, 0.71 times their distance)" if (rows["n_seeds"] == 2).any() else ""
    return [f"mean ± sample standard deviation over seeds{two}"]


def _method_notes(rows: pd.DataFrame) -> list[str]:
    """Return notes on the tests over images, and over seeds if there are several."""
    units, several = _units(rows), not _one_seed(rows)
    flipped = f"paired permutation test that flips the sign of each {_UNITS[units]}'s difference"
    sentences = [f"p, {units}: {flipped}; CI: percentile bootstrap over {units}."]
    averaged = ["values are averaged over seeds first"] if several else []
    if "images" in units:
        sentences.append("; ".join(["An image is resampled with all its captions", *averaged]) + ".")
    elif several:
        sentences.append(f"{averaged[0].capitalize()}.")
    over = f"{units} or over seeds" if several else units
    sentences.append(f"d: mean / standard deviation of the paired differences (d_z), over {over}.")
    return [" ".join([*sentences, _SEEDS, _BETTER] if several else sentences), *_mdd_note(rows)]


def _mdd_note(rows: pd.DataFrame) -> list[str]:
    """Return a note on MDD if a test found no difference."""
    alpha = rows["alpha"].iloc[0]
    missed, missed_seeds = rows["p_images_holm"] > alpha, (rows["p_t_holm"] > alpha) & rows["mdd_seeds"].notna()
    if not missed.any() and not missed_seeds.any():
        return []
    family = _span(rows["family"])
    sentences = [
        f"MDD, where p is above {alpha:g}: minimum detectable difference, which the test finds with probability "
        f"{rows['power'].iloc[0]:g} at level {alpha:g}{'' if family == '1' else f' / {family}'}; it follows from the "
        "spread of the paired differences, not from their mean."
    ]
    if missed_seeds.any():
        how_rough = _systems.how_rough(rows[missed_seeds], "mdd_seeds", "n_seeds")
        sentences.append(f"Over seeds the MDD is as uncertain as the standard deviation: {how_rough}.")
    if (missed & rows["mdd_images"].isna() & (rows["sd_images"] > 0)).any():
        sentences.append(f"Over {_units(rows)} it is missing where the resamples are too few for such a small p.")
    return [" ".join(sentences)]


def _units(rows: pd.DataFrame) -> str:
    """Return the units that tests resample."""
    images = rows["direction"].isin(["i2t", "t2i", "both"])
    return "images" if images.all() else "images or queries" if images.any() else "queries"


def _undefined_notes(rows: pd.DataFrame) -> list[str]:
    """Return footnotes on undefined numbers, and on runs without a partner."""
    return [
        f"{'All pairs' if len(pairs) == len(rows) > 1 else '; '.join(dict.fromkeys(pairs))}: {note}."
        for note, pairs in _systems.pairs_of_notes(rows).items()
    ]


def _span(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def _require_comparisons(frame: pd.DataFrame) -> None:
    require_columns(frame, REQUIRED, "comparison rows")
    if frame.empty:
        raise InputError("table comparison must have rows; got none. Run `lossscope compare`")
