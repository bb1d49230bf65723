"""Which claimed orderings survive other ways of counting? A line for each claim: its share, and that at each level."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from lossscope.stats.claims import CLAIM, PRINTED
from lossscope.stats.multiverse import DIMENSIONS, claim_shares, level_order, level_shares, require_universes

from .base import Table
from .cells import Cell

_LISTED = 2  # levels that a line names; the second table has all
HALF = 0.5  # a level at which a claim holds in fewer universes overturns it
_REASONS = 4  # for undefined universes that a note names
_WORDS = {"batch": "batch size"}  # dimension -> its heading
_LEGEND = (
    "claim: A < B says that A has the lower number",
    "count: C_q of a loss that has it, else C_neg, as papers print them",
    "released, text: a loss without this convention is counted as corrected; both are in the unit paper alone",
    "stated: the two numbers, printed by the paper, or our means at the study's choices",
    "holds: universes in which A has the lower number, of those in which both have a number",
    "tie: universes with equal numbers, in which the claim does not hold",
    "undefined: universes in which A or B has no number; no share counts them",
    "most decisive: the choice that alone changes the answer in the largest share of sets of universes that differ in "
    "it alone",
    "fails at: levels at which the claim holds in less than half of the defined universes",
)
_NO_P = (
    "Universes are choices, not samples: a share is no probability, and no p-value follows from it. They share models "
    "and items, and each has the same weight."
)


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table of the claims, and a table of the share at each level of each dimension.

    Args:
        frame: rows of `lossscope study multiverse`.

    Raises:
        InputError: columns or rows are missing, or a universe is there twice.
    """
    rows = require_universes(frame)
    claims, levels = claim_shares(rows), level_shares(rows)
    return [_claims(rows, claims, levels), _levels(rows, levels)]


def claim_text(lower: object, higher: object) -> str:
    """Return `SmoothAP < Triplet`."""
    return f"{lower} < {higher}"


def _claims(rows: pd.DataFrame, claims: pd.DataFrame, levels: pd.DataFrame) -> Table:
    columns = (
        *_label_headings(), ("", "from"), ("", "stated"), ("", "holds"), ("", "%"), ("", "tie"), ("", "undefined"),
        ("", "most decisive"), ("", "fails at"),
    )  # fmt: skip
    lines = []
    for row in claims.to_dict("records"):
        failing = _failing(levels[_is_claim(levels, {str(name): row[name] for name in CLAIM})])
        decisive = f"{_WORDS.get(row['decisive'], row['decisive'])} {100 * row['flips']:.0f} %"
        stated = f"{row['stated_lower']:.4g} < {row['stated_higher']:.4g}"
        lines.append((
            *_labels({str(name): row[name] for name in CLAIM}), Cell(text=row["origin"]), Cell(text=stated),
            Cell(text=f"{row['holds']} of {row['defined']}"), _percent(row["share"]), Cell(mean=row["ties"], digits=0),
            Cell(mean=row["undefined"], digits=0), Cell(text=decisive if row["decisive"] else "none"),
            Cell(text=failing),
        ))  # fmt: skip
    return Table("multiverse", _caption(rows, claims), columns, tuple(lines), tuple(_notes(rows)), _LEGEND)


def _levels(rows: pd.DataFrame, levels: pd.DataFrame) -> Table:
    headings = [
        (_WORDS.get(name, name), level)
        for name in DIMENSIONS
        for level in level_order(rows, name)
    ]  # fmt: skip
    shares = {
        (*(row[name] for name in CLAIM), _WORDS.get(row["dimension"], row["dimension"]), row["level"]): row["share"]
        for row in levels.to_dict("records")
    }
    lines = []
    for key in dict.fromkeys(map(tuple, rows[list(CLAIM)].to_numpy())):
        labels = _labels(dict(zip(CLAIM, key, strict=True)))
        lines.append((*labels, *(_percent(shares.get((*key, *heading), math.nan)) for heading in headings)))
    caption = (
        "Per cent of the defined universes at each level in which each claim holds; a dash: the claim does not depend "
        "on that choice, or no universe is defined."
    )
    return Table("multiverse-levels", caption, (*_label_headings(), *headings), tuple(lines))


def _caption(rows: pd.DataFrame, claims: pd.DataFrame) -> str:
    printed = int((claims["origin"] == PRINTED).sum())
    dimensions = "; ".join(
        f"{_WORDS.get(name, name)} {', '.join(levels)}" for name in DIMENSIONS if (levels := level_order(rows, name))
    )
    study = f" of {rows['study'].iloc[0]}" if "study" in rows else ""
    split = f"; split {', '.join(map(str, rows['split'].unique()))}" if "split" in rows else ""
    number = f"{len(claims)} {'claim' if len(claims) == 1 else 'claims'}"
    return (
        f"Claimed orderings{study}: {number}, {printed} printed by the paper and {len(claims) - printed} ours; "
        f"{len(rows):,} comparisons, each of a claim in a universe. Choices: {dimensions}{split}. {_NO_P}"
    )


def _notes(rows: pd.DataFrame) -> list[str]:
    """Return why universes are undefined, and what is known of the printed numbers."""
    notes = []
    if "reason" in rows:
        reasons = rows.loc[rows["holds"].isna(), "reason"].map(_text_or("no reason is known")).value_counts(sort=False)
        each = [f"{number} times: {reason}" for reason, number in list(reasons.items())[:_REASONS]]
        each += [f"{len(reasons) - _REASONS} more reasons are in --format csv"] if len(reasons) > _REASONS else []
        notes += [f"Undefined universes: {'. '.join(each)}."] if each else []
    if "note" in rows:
        known = rows.drop_duplicates(list(CLAIM))
        for text, claims in known[known["note"].map(_text_or("")) != ""].groupby("note", sort=False):
            names = dict.fromkeys(
                f"{row['metric']} {claim_text(row['lower'], row['higher'])}" for row in claims.to_dict("records")
            )
            notes.append(f"Printed numbers of {', '.join(names)}: {text}")
    return notes


def _text_or(default: str) -> Callable[[object], str]:
    """Return a function that gives a text back, and `default` for a missing one."""
    return lambda value: value if isinstance(value, str) and value else default


def _failing(levels: pd.DataFrame) -> str:
    """Return the levels at which a claim holds in less than half of the universes, the smallest share first."""
    known = levels[levels["share"].notna()]
    below = [
        f"{_WORDS.get(row['dimension'], row['dimension'])} {row['level']}"
        for row in known[known["share"] < HALF].sort_values("share", kind="stable").to_dict("records")
    ]
    if below and len(below) == len(known):
        return "all"
    more = [f"{len(below) - _LISTED} more"] if len(below) > _LISTED else []
    return ", ".join([*below[:_LISTED], *more]) or "none"


def _is_claim(frame: pd.DataFrame, claim: dict[str, object]) -> pd.Series[bool]:
    same = pd.Series(True, index=frame.index)
    for name, value in claim.items():
        same &= frame[name] == value
    return same


def _label_headings() -> tuple[tuple[str, str], ...]:
    return tuple(("", name) for name in ("data", "encoder", "metric", "claim"))


def _labels(claim: dict[str, object]) -> tuple[Cell, ...]:
    texts = (claim["data"], claim["encoder"], claim["metric"], claim_text(claim["lower"], claim["higher"]))
    return tuple(Cell(text=str(text)) for text in texts)


def _percent(share: float) -> Cell:
    return Cell() if math.isnan(share) else Cell(mean=100 * share, digits=0)
