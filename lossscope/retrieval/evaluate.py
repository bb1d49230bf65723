"""The retrieval protocol: recalls, average precision and ranks of a source, over folds, and of ensembles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from lossscope.core.choices import WHOLE
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.float32_products import float32_products
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.types import Progress, Rows
from lossscope.errors import InputError
from lossscope.io.frames import MEMBERS, SUMMARY

from .folds import require_same_items, retrieve_folds
from .measures import choose_cutoffs
from .metrics import Retrieval, retrieve
from .rank_agreement import rank_agreement

_UNITS = {"rsum": "sum of %", "medr": "rank", "meanr": "rank", "ties": "queries", "ties_any": "queries"}


@float32_products()
def evaluate(
    embedded: Sequence[SplitEmbeddings],
    folds: int = 1,
    progress: Progress | None = None,
    cutoffs: Sequence[int] | None = None,
    queries: Pair[npt.NDArray[np.bool_]] | None = None,
) -> pd.DataFrame:
    """Return summary rows (probe `recall`) of one source, or of an ensemble: the mean of several sources' similarities.

    Queries are the items that have a positive, candidates all items of the other side; of one set, all other items.
    Images and captions have the statistics of their papers, R@1, R@5, R@10, medr, meanr, MRR, mAP@5 and rsum; any other
    sides those of `measures.measures`, too, and no rsum. Relevance is binary.

    Args:
        embedded: the source, or those of the ensemble.
        folds: number of equal runs of images, in file order, that are evaluated apart and averaged (COCO 1K is 5 folds
            of 5,000); std is then over folds.
        progress: called after each tile.
        cutoffs: k of R@k, recall@k, nDCG@k and MRR@k, 1, 5 and 10 unless given; images and captions have the last
            three, MAP@R and R-precision only where they are given.
        queries: (N,) and (M,) items of each side that are queries, where not all with a positive are; of one fold.

    Raises:
        InputError: sources hold different items, folds do not divide the images, a fold has no captions, folds of
            other sides than images and captions, a k below 1, or queries of which none has a positive.
    """
    first = embedded[0]
    require_same_items(embedded)
    name = first.name if len(embedded) == 1 else "mean of " + ", ".join(e.name for e in embedded)
    floor, sides, ks = first.floors_median_rank, first.sides, choose_cutoffs(first.sides, cutoffs)
    results = list(retrieve_folds(embedded, folds, progress, ks))
    if queries is not None:
        results = [_choose_queries(results[0], first.relations, queries)]
    statistics = [_statistics(Pair(*both), sides, floor) for both in results]
    split = _split_name(first, queries is not None)
    seed = first.seed if len(embedded) == 1 else None
    number = {label: len(result.ranks) for label, result in zip(sides.labels, results[0], strict=False)}
    number["both"] = number[sides.labels[0]]
    more = dict(first.further_columns)
    if len(embedded) > 1:
        more[MEMBERS] = ", ".join(e.name for e in embedded)
    if len(embedded) == 1 and folds == 1 and (agreement := rank_agreement(first)) is not None:
        statistics[0]["both", "spearman"] = agreement
        number["both"] = len(first.scores)
    objective = first.objective if len({e.objective for e in embedded}) == 1 else None
    rows = []
    for direction, statistic in statistics[0]:
        values = np.array([of_fold[direction, statistic] for of_fold in statistics])
        n = folds if folds > 1 else number[direction]
        rows.append({
            "source": name, "objective": objective, "direction": direction,
            "probe": "recall", "statistic": statistic, "mean": float(values.mean()),
            "std": float(values.std()) if folds > 1 else np.nan, "n": n, "n_defined": n,
            "unit": _unit(statistic), "convention": None, "eps": np.nan,
            "batch_size": np.nan, "sampling": f"{folds} folds" if folds > 1 else split, "seed": seed,
            **more,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=[*SUMMARY, *more])


def metric_values(S: Pair[Tensor], related: Relations | Rows, floor_median: bool = True) -> dict[str, float]:
    """Return `i2t_R@1` ... `t2i_ties` and `rsum` of S: what training validates with after each epoch.

    Other sides than images and captions have all measures, named after their directions: `q2d_nDCG@10`.

    Args:
        S: similarities of each direction, queries as rows.
        related: positives, or (M,) row of the image that each caption describes.
        floor_median: whether the median rank is rounded down.
    """
    sides = related.sides if isinstance(related, Relations) else IMAGE_TEXT
    both = retrieve(S, related, choose_cutoffs(sides, None))
    values = _statistics(Pair(*both), sides, floor_median)
    return {name if direction == "both" else f"{direction}_{name}": v for (direction, name), v in values.items()}


def _statistics(both: Pair[Retrieval], sides: Sides, floor_median: bool) -> dict[tuple[str, str], float]:
    """Return (direction, statistic) -> value; of images and captions rsum, too."""
    values: dict[tuple[str, str], float] = {}
    for direction, result in zip(sides.labels, both, strict=False):
        published = result.statistics(floor_median) if sides.is_image_text else {}
        further = result.all_statistics(floor_median) if result.measures else {}
        values |= {(direction, name): value for name, value in (further | published).items()}
    if sides.is_image_text:
        values["both", "rsum"] = sum(values[d, f"R@{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10))
    return values


def _unit(statistic: str) -> str:
    """Return the unit of a statistic: recalls are in per cent, precisions and gains in [0, 1]."""
    return _UNITS.get(statistic, "%" if statistic.startswith(("R@", "recall@")) else "1")


def _choose_queries(
    both: tuple[Retrieval, Retrieval], relations: Relations, queries: Pair[npt.NDArray[np.bool_]]
) -> tuple[Retrieval, Retrieval]:
    """Return the retrieval of some queries. Raises InputError, naming the side, where none of them has a positive."""
    chosen: list[Retrieval] = []
    for ranked, related, wanted in zip(both, (relations, relations.t()), queries, strict=True):
        kept = wanted[np.flatnonzero(related.number_of_positives)]
        if not kept.any():
            label = relations.sides.labels[len(chosen)]
            asked = f"no {relations.sides.query(label)} is a query"
            raise InputError(f"{label} must have at least one of the requested queries; {asked}")
        chosen.append(ranked.take(kept))
    return chosen[0], chosen[1]


def _split_name(embedded: SplitEmbeddings, sampled: bool) -> str | None:
    """Return the name of the split, and that not all of its items are queries."""
    split = f"{embedded.split} split" if embedded.split not in (None, WHOLE) else None
    return ", ".join([*([split] if split else []), "judged queries"]) if sampled else split
