"""How many negatives carry the gradient, how much of it, and how many queries have none?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from ..chapters.base import ReportData, sides_of
from ..chapters.contributors import TITLE
from ..sections import Finding
from .base import join, number, per_cent, setting

_COUNTS = ("C_q_all", "C_neg")  # of all queries, whichever a loss has
_NEGATIVES, _TRIPLETS = "negatives of a query", "triplets per positive"  # what losses count; SmoothAP the second
_NONE, _ALL = 1e-9, 1 - 1e-9


@dataclass(frozen=True)
class Share:
    """The counts of one loss, means over both directions and all runs."""

    label: str
    count: float  # samples above eps, per query
    samples: str  # what they are: negatives of a query, or triplets per positive
    negatives: str  # of a query: `63`, `at most 63` where a batch is short; empty where the batches do not tell
    weight: float | None  # share of the weight on negatives that is above eps
    idle: float | None  # share of queries without a negative above eps
    queries: str  # whose share is `idle`: `queries`, or `image queries` where batches are of images


def build(data: ReportData) -> Iterator[Finding]:
    """Yield a sentence on the losses of the setting that has most of them."""
    name, encoder, shares = shares_of_largest_setting(data)
    if not shares:
        return
    rows = data.corrected_rows("cocos")
    several = len(rows[["data", "encoder"]].drop_duplicates()) > 1
    yield Finding(sentence(shares, data.eps, f" on {setting(name, encoder, rows)}" if several else ""), TITLE)


def shares_of_largest_setting(data: ReportData) -> tuple[str, str, list[Share]]:
    """Return data, encoder and the counts of each loss, of the first setting that has most of them."""
    rows = data.corrected_rows("cocos")
    counted = rows[rows["statistic"].isin(_COUNTS)].dropna(subset=["mean"])
    if counted.empty:
        return "", "", []
    sizes = counted.groupby(["data", "encoder"], sort=False, observed=True)["objective_label"].nunique()
    name, encoder = map(str, sizes.index[int(sizes.to_numpy().argmax())])
    return name, encoder, _shares(data, name, encoder)


def sentence(shares: list[Share], eps: float, where: str = "") -> str:
    """Return `On average 11.5 of 127 negatives ...`: one loss in full, several one after another."""
    if len(shares) == 1:
        single = shares[0]
        carry = "" if single.weight is None else f" and carry {_weight(single.weight)}"
        idle = "" if single.idle is None else f"; {_idle(single)}"
        return f"{single.label}{where}: on average {_counted(single)} have a weight above {eps:g}{carry}{idle}."
    each = []
    for single in sorted(shares, key=lambda share: share.count):
        details = [_weight(single.weight) if single.weight is not None else "", _idle(single, short=True)]
        listed = ", ".join(part for part in details if part)
        unit = "" if single.samples == _NEGATIVES else f" {single.samples}"
        each.append(f"{single.label} {number(single.count)}{unit}{f' ({listed})' if listed else ''}")
    sizes = {share.negatives for share in shares}
    samples = "Negatives of a query" if all(share.samples == _NEGATIVES for share in shares) else "Samples of a query"
    of = f" of {sizes.pop()}" if len(sizes) == 1 and "" not in sizes else ""
    return f"{samples} that carry the gradient{where}, on average{of}, by a weight above {eps:g}: {join(each)}."


def _shares(data: ReportData, name: str, encoder: str) -> list[Share]:
    rows = data.results.rows
    rows = rows[(rows["data"] == name) & (rows["encoder"] == encoder)]
    rows = rows[rows["convention"].isna() | (rows["convention"] == "corrected")]
    smallest = rows["eps"].isna() | (rows["eps"] == rows["eps"].min())
    return [
        share
        for label, group in rows[smallest].groupby("objective_label", sort=False, observed=True)
        if (share := _share(str(label), group)) is not None
    ]


def _share(label: str, rows: pd.DataFrame) -> Share | None:
    counts = rows[(rows["probe"] == "cocos") & rows["statistic"].isin(_COUNTS)]
    mean = float(counts["mean"].mean())
    if math.isnan(mean):
        return None
    is_smoothap = counts["objective"].astype(str).str.startswith("smoothap").any()
    samples, queries = _TRIPLETS if is_smoothap else _NEGATIVES, "queries"
    if (counts["sampling"] == "images").any():
        queries = "image queries"
    return Share(label, mean, samples, _candidates(counts), _weight_share(rows), _idle_share(rows), queries)


def _candidates(counts: pd.DataFrame) -> str:
    """Return the negatives of a query in batches of pairs of one size; nothing where the batches do not tell."""
    sizes = counts["batch_size"].dropna().unique()
    if len(sizes) != 1 or not (counts["sampling"] == "pairs").all():
        return ""
    equal = "short_batch" in counts and counts["short_batch"].isna().all() and (counts["n"] > 1).all()
    return f"{'' if equal else 'at most '}{sizes[0] - 1:g}"


def _weight_share(rows: pd.DataFrame) -> float | None:
    """Return mass above eps / mass of all negatives, both summed over directions and runs."""
    mass = rows[rows["probe"] == "weight_mass"].groupby("statistic", observed=True)["mean"].mean()
    if not {"W_neg", "W_low"} <= set(mass.dropna().index) or mass["W_neg"] + mass["W_low"] <= 0:
        return None
    return float(mass["W_neg"] / (mass["W_neg"] + mass["W_low"]))


def _idle_share(rows: pd.DataFrame) -> float | None:
    """Return queries without a negative above eps / queries of a batch; of batches of images that of image queries.

    Of batches of pairs with mined negatives it is of the first side: mined negatives are no queries.
    """
    idle = rows[(rows["probe"] == "cocos") & (rows["statistic"] == "C_0")]
    first = sides_of(rows).labels[0]
    idle = idle[(idle["direction"] == first) | (idle["sampling"] == "pairs")]
    shares = (idle["mean"] / idle["batch_size"]).dropna()
    return float(shares.mean()) if len(shares) else None


def _counted(share: Share) -> str:
    """Return `11.5 of 127 negatives of a query`."""
    of = f" of {share.negatives}" if share.negatives and share.samples == _NEGATIVES else ""
    return f"{number(share.count)}{of} {share.samples}"


def _weight(share: float) -> str:
    return "all of the push" if share >= _ALL else f"{per_cent(share)} of the push"


def _idle(share: Share, short: bool = False) -> str:
    if share.idle is None:
        return ""
    if share.idle <= _NONE:
        return f"no {share.queries.removesuffix('ies')}y idle" if short else f"none of the {share.queries} is idle"
    return f"{per_cent(share.idle)} of {'' if short else 'the '}{share.queries} {'' if short else 'are '}idle"
