"""Names of the metrics that runs are compared on; imports nothing heavy: the command line offers them at once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lossscope.core.types import DIRECTIONS

CUTOFFS = (1, 5, 10)  # k of R@k
BASIC = (*(f"R@{k}" for k in CUTOFFS), "MRR", "mAP@5")  # that follow from `rank` and `ap5` of single queries

RECALLS = ("rsum", *(f"{direction}_R@{k}" for direction in DIRECTIONS for k in CUTOFFS))
HEADLINES = ("nDCG@10", "R@1", "MAP@R")  # that reports test of other sides
METRICS = ("rsum", *(f"{direction}_{name}" for direction in DIRECTIONS for name in BASIC))  # of images and captions

_DIRECTION = r"[^\W\d_]2[^\W\d_]|all"
_MEASURE = r"(?:R|recall|nDCG|MRR)@([1-9]\d{0,8})|MAP@R|R-precision"


def is_direction(name: str) -> bool:
    """Return whether a text names a direction of retrieval: i2t, q2d, all."""
    return re.fullmatch(_DIRECTION, name) is not None


def is_measure(name: str) -> bool:
    """Return whether a text names a measure of single queries: nDCG@10, recall@100, MAP@R."""
    return re.fullmatch(_MEASURE, name) is not None


def is_statistic(name: str) -> bool:
    """Return whether a text names a number of single queries, without its direction: R@1, nDCG@10."""
    return name in BASIC or is_measure(name)


def is_metric(name: str) -> bool:
    """Return whether some source may have a metric of this name.

    >>> [is_metric(name) for name in ("rsum", "q2d_nDCG@10", "all_MAP@R", "d2q_mAP@5", "R@1", "q2d_R@0")]
    [True, True, True, True, False, False]
    """
    direction, _, statistic = name.partition("_")
    return name == "rsum" or (is_direction(direction) and is_statistic(statistic))


def extra_cutoffs(metrics: Iterable[str]) -> tuple[int, ...] | None:
    """Return 1, 5, 10 and k of the metrics, where rows of images and captions would lack one of them, else None.

    >>> extra_cutoffs(["rsum", "i2t_R@1"]), extra_cutoffs(["q2d_nDCG@100"])
    (None, (1, 5, 10, 100))
    """
    further = [name.partition("_")[2] for name in metrics if name not in (*METRICS, "all")]
    found = [re.fullmatch(_MEASURE, name) for name in further]
    ks = {int(match[1]) for match in found if match and match[1]}
    return tuple(sorted({*CUTOFFS, *ks})) if further else None
