"""What do the counts of `cocos` mean for this model? Compute a sentence; leave it out if it would not be exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ._intervals import is_sample
from ._specs import shorten
from ._summary import format_value, name_of, system_keys, varying_settings

_SENTENCES = 4  # sentences, at most: of more lines, only the fewest and the most samples get a sentence
_LABELS = ("source", "objective", "objective_label", "data", "encoder")  # columns whose values need no name
_USED = ("C_neg", "C_q_all", "W_neg", "W_low", "C_0")
_PER_BATCH = {"pairs": ("i2t", "t2i"), "images": ("t2i",)}  # sampling -> directions with a candidate per item
_QUERIES = {"pairs": ("i2t", "t2i"), "images": ("i2t",)}  # sampling -> directions with a query per item


@dataclass(frozen=True)
class Side:
    """One direction of a line of a table."""

    direction: str
    means: dict[str, float]  # statistic -> mean
    negatives: str  # `of 127 negatives`; `negatives` if the rows do not state the number
    queries: str  # `of the 128 queries`
    batch: str  # batch of the idle queries: `a full batch` if another batch is short
    is_sample: bool = False  # whether the numbers come from a sample of queries

    @property
    def count(self) -> float:
        """Samples that count, per query."""
        return self.means.get("C_neg", self.means.get("C_q_all", 0.0))

    @property
    def share(self) -> str:
        """The share of the negatives' weight above eps: `88 %`."""
        above, below = self.means["W_neg"], self.means["W_low"]
        if below == 0:
            return "all"
        percent = 100 * above / (above + below)
        return f"{percent:.0f} %" if percent < 99 else f"{percent:.1f} %" if percent < 99.9 else "more than 99.9 %"


def meaning(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return a sentence per source, objective and setting, from rows of `cocos` in the convention corrected.

    Args:
        rows: summary rows.
    """
    used = (rows["probe"] == "cocos") & (rows["convention"] == "corrected") & rows["statistic"].isin(_USED)
    sentences = list(_sentences(rows[used])) if used.any() else []
    if len(sentences) <= _SENTENCES:
        return tuple(text for _, text in sentences)
    first, *_, last = sorted(sentences, key=lambda sentence: sentence[0])
    return f"Fewest: {first[1]}", f"Most: {last[1]}"


def _sentences(rows: pd.DataFrame) -> Iterator[tuple[float, str]]:
    """Yield the count of a line, and its sentence."""
    keys = [*system_keys(rows), *varying_settings(rows)]
    several = [key for key in keys if rows[key].map(format_value).nunique() > 1]
    short = shorten(rows["objective"].map(str), "objectives")
    lines: list[tuple[str, float, str]] = []
    for values, of_line in rows.groupby(keys, sort=False, dropna=False, observed=True):
        spec = dict(zip(keys, values, strict=True))
        sides = [_side(part) for _, part in of_line.groupby("direction", sort=False, observed=True)]
        text = _sentence(name_of(of_line["objective"].iloc[0]), sides, float(of_line["eps"].iloc[0]))
        named = {key: short.get(str(spec[key]), format_value(spec[key])) for key in several}
        lines += [(", ".join(map(_label, named, named.values())), sides[0].count, text)] if text else []
    if set(several) == {"eps"} and len({text for _, _, text in lines}) == 1:
        lines = [("", *line[1:]) for line in lines[:1]]  # the weights are above every eps
    for start, count, text in lines:
        yield count, f"{start}: {text}" if start else text[0].upper() + text[1:]


def _label(key: str, value: str) -> str:
    return value if key in _LABELS else f"{key.replace('_', ' ')} {value}"


def _side(rows: pd.DataFrame) -> Side:
    row = rows.to_dict("records")[0]
    direction, size, sampling = str(row["direction"]), row["batch_size"], str(row["sampling"])
    means = {
        str(name): float(of_statistic.mean())
        for name, of_statistic in rows.dropna(subset=["mean"]).groupby("statistic")["mean"]
    }
    most = "at most " if _may_be_fewer(row) else ""
    in_batch = pd.notna(size) and direction in _PER_BATCH.get(sampling, ())
    queried = pd.notna(size) and direction in _QUERIES.get(sampling, ())
    return Side(
        direction,
        means,
        f"of {most}{size - 1:g} negatives" if in_batch else "negatives",
        f"of {'at most' if row['n'] < 2 else 'the'} {size:g} queries" if queried else "queries",
        "a full batch" if pd.notna(row.get("short_batch")) else "a batch",
        is_sample(sampling),
    )


def _may_be_fewer(row: dict[Any, Any]) -> bool:
    """Return whether a batch may hold fewer items than the batch size: a batch is short, or the rows do not say."""
    return row["n"] < 2 or "n_spread" not in row or pd.notna(row.get("short_batch"))


def _sentence(name: str, sides: Sequence[Side], eps: float) -> str:
    """Return `on average 11.5 of 127 negatives carry 89 % of the push; none of the queries is idle.`"""
    has = frozenset.intersection(*(frozenset(side.means) for side in sides))
    if name == "triplet" and "C_q_all" in has and eps < 1:
        return _join(
            f"on average {_each(sides, _count)} {_negatives_of(sides)} carry all of the push", _idle(sides, "are idle")
        )
    if name == "triplet_sh" and "C_q_all" in has and eps < 1:
        of_batch = _negatives_of(sides)
        hardest = "negative" if of_batch == "negatives" else of_batch
        return _join(f"the hardest {hardest} carries all of the push", _idle(sides, "are idle"))
    if name == "smoothap" and "C_q_all" in has:
        counted = f"on average {_each(sides, _count)} triplets per positive have a weight above eps"
        return _join(counted, _idle(sides, "have none"))
    if {"C_neg", "W_neg", "W_low"} <= has and all(side.means["W_neg"] + side.means["W_low"] > 0 for side in sides):
        shares = list(dict.fromkeys(side.share for side in sides))
        counted = f"on average {_each(sides, _count)} {_negatives_of(sides)} carry {' and '.join(shares)} of the push"
        return _join(counted, _idle(sides, "have no negative above eps"))
    return ""


def _join(counted: str, idle: str) -> str:
    return f"{counted}; {idle}." if idle else f"{counted}."


def _idle(sides: Sequence[Side], are: str) -> str:
    """Return how many queries have nothing that counts; empty if the rows do not say."""
    if not all("C_0" in side.means for side in sides):
        return ""
    if all(side.means["C_0"] == 0 for side in sides):
        return f"none of the {'sampled ' if sides[0].is_sample else ''}queries is idle"
    queries = list(dict.fromkeys(side.queries for side in sides))
    if len(queries) == 1:
        return f"{_each(sides, lambda side: side.means['C_0'])} {queries[0]} of {sides[0].batch} {are}"
    each = [f"{_number(side.means['C_0'])} {side.queries} ({side.direction})" for side in sides]
    return f"{' and '.join(each)} of {sides[0].batch} {are}"


def _negatives_of(sides: Sequence[Side]) -> str:
    """Return `of 127 negatives` if that holds for both directions, else `negatives`."""
    negatives = dict.fromkeys(side.negatives for side in sides)
    return next(iter(negatives)) if len(negatives) == 1 else "negatives"


def _each(sides: Sequence[Side], value: Callable[[Side], float]) -> str:
    """Return `11.5`, or `11.5 (i2t) and 11.6 (t2i)` if the directions differ."""
    texts = [_number(value(side)) for side in sides]
    if len(set(texts)) == 1:
        return texts[0]
    return " and ".join(f"{text} ({side.direction})" for text, side in zip(texts, sides, strict=True))


def _count(side: Side) -> float:
    return side.count


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"
