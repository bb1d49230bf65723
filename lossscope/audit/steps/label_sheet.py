"""Which pairs are worth a label?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import NONE, Relations
from lossscope.core.types import Rows

from ..estimate.design import split_by_score
from ..estimate.pair_file import DesignRow
from ..estimate.sheet import deal, draw_for_fit, order_strata
from ..parts.material import Material
from ..types import PairRows
from .result import Pool, ScoredPairs
from .scorer import Scorer

_POOL = 3  # pairs of the page for each pair of the sheet
_MOST = 600  # pairs of the page, unless the sheet has more
_FOR_FIT = 4  # 1 in 4 pairs of the sheet serves the fit alone
_SUSPECTS = 2  # 1 in 2 of these is a suspect


def pairs_to_label(scorer: Scorer, suspects: ScoredPairs, drawn: ScoredPairs, size: int, seed: int) -> Pool:
    """Return pairs to label, drawn by strata of the score; for the fit alone, suspects and pairs of high signals.

    Strata use the weights before labels, so that a second sheet continues the strata of the first. A pair that was
    answered for the fit alone stays in its stratum: without it the stratum would have other pairs.

    If batches have mined negatives, which resemble a positive but were chosen as negatives, or lack candidates without
    a label, a suspect outside batches matches more often than a pair of a batch with the same signals. It would raise
    the model's rate, so the sheet has no such suspects.
    """
    material, labels = scorer.table.material, scorer.labels
    relations = material.relations
    answered = np.zeros(0, np.int64) if labels is None else _keys(relations, labels.pairs)
    of_design = np.zeros(0, bool) if labels is None else np.array([row is not None for row in labels.design], bool)
    keys, can_match = _keys(relations, drawn.pairs), np.nonzero(drawn.copy == 0)[0]
    score = scorer.prior.logit(drawn.Z[can_match])
    strata = [can_match[part] for part in split_by_score(score)]
    orders = order_strata(strata, keys, answered[of_design], seed)
    lengths = [len(order) for order in orders]
    of_pool = deal(lengths, max(size, min(_POOL * size, _MOST)))

    closed = np.r_[answered, keys[_rows(orders, of_pool)]]
    few = size // _FOR_FIT
    doubtful = suspects.take(np.nonzero(_can_be_in_batch(material, suspects.pairs))[0])
    doubtful = _open_pairs(relations, doubtful, closed)
    logit = scorer.calibration.logit(doubtful.Z)[:, None]
    first = doubtful.take(draw_for_fit(logit, few // _SUSPECTS, seed))
    others = _open_pairs(relations, drawn, np.r_[closed, _keys(relations, first.pairs)])
    second = others.take(draw_for_fit(others.Z, few - len(first.pairs), seed))

    for_fit = len(first.pairs) + len(second.pairs)
    of_sheet = deal(lengths, size - for_fit)
    sheet = ScoredPairs.join([first, second, drawn.take(_rows(orders, of_sheet))])
    rest = [order[number:] for order, number in zip(orders, of_sheet, strict=True)]
    left = [whole - number for whole, number in zip(of_pool, of_sheet, strict=True)]
    numbers = np.arange(1, len(strata) + 1)
    stratum = np.r_[np.zeros(for_fit, np.int64), np.repeat(numbers, of_sheet)], np.repeat(numbers, left)
    random = np.random.default_rng(seed)
    mixed, later = (random.permutation(len(part)) for part in stratum)
    return Pool(
        ScoredPairs.join([sheet.take(mixed), drawn.take(_rows(rest, left)[later])]),
        size=len(mixed),
        design=tuple(
            DesignRow(number, len(strata), len(strata[number - 1]) / len(drawn.pairs)) if number else None
            for number in np.r_[stratum[0][mixed], stratum[1][later]].tolist()
        ),
        shares=tuple(len(part) / len(drawn.pairs) for part in strata),
    )


def _rows(orders: Sequence[Rows], numbers: Sequence[int]) -> Rows:
    """Return the first rows of each order."""
    return np.concatenate([np.zeros(0, np.int64), *(q[:number] for q, number in zip(orders, numbers, strict=True))])


def _keys(relations: Relations, pairs: PairRows) -> Rows:
    """Return a number of each pair, the same for (a, b) and (b, a) of one set."""
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    return low * relations.second + high if relations.one_set else pairs.left * relations.second + pairs.right


def _open_pairs(relations: Relations, scored: ScoredPairs, closed: Rows) -> ScoredPairs:
    """Return each pair once, without copies and closed pairs."""
    keys = _keys(relations, scored.pairs)
    first = np.sort(np.unique(keys, return_index=True)[1])
    return scored.take(first[(scored.copy[first] == 0) & ~np.isin(keys[first], closed)])


def _can_be_in_batch(material: Material, pairs: PairRows) -> npt.NDArray[np.bool_]:
    """Return (n,) whether both items have a positive; all False if batches have mined negatives."""
    if material.relations.negatives is not None:
        return np.zeros(len(pairs), bool)
    queries, candidates = material.positives_of_queries[:, 0], material.positives_of_candidates[:, 0]
    return np.asarray((queries[pairs.left] != NONE) & (candidates[pairs.right] != NONE))
