"""Which pairs are worth a label?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..estimate.sheet import draw_sheet
from ..parts.material import Material
from ..types import PairRows
from .result import ScoredPairs
from .scorer import Scorer


def pairs_to_label(scorer: Scorer, suspects: ScoredPairs, drawn: ScoredPairs, size: int, seed: int) -> ScoredPairs:
    """Return pairs to label: a fifth of them suspects, the others of random batches; none that is answered already.

    A batch has mined negatives, which are similar to a positive but chosen to be none, and lacks candidates without a
    label: there a suspect matches more often than a pair of a batch with the same signals, and would raise the rate.
    """
    material, labels = scorer.table.material, scorer.labels
    relations = material.relations

    def keys(pairs: PairRows) -> Rows:
        low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
        return low * relations.second + high if relations.one_set else pairs.left * relations.second + pairs.right

    def open_pairs(scored: ScoredPairs, closed: Rows) -> ScoredPairs:
        """Each pair once, without those that copies prove and those that are closed."""
        own = keys(scored.pairs)
        first = np.sort(np.unique(own, return_index=True)[1])
        return scored.take(first[(scored.copy[first] == 0) & ~np.isin(own[first], closed)])

    closed = np.zeros(0, np.int64) if labels is None else keys(labels.pairs)
    doubtful = open_pairs(suspects.take(np.nonzero(_can_be_in_batch(material, suspects.pairs))[0]), closed)
    few = min(size // 5, len(doubtful.pairs))
    first = doubtful.take(draw_sheet(scorer.calibration.logit(doubtful.Z), doubtful.Z[:, :0], few, seed))
    others = open_pairs(drawn, np.r_[closed, keys(first.pairs)])
    rest = others.take(draw_sheet(scorer.calibration.logit(others.Z), others.Z, size - few, seed))
    both = ScoredPairs.joined([first, rest])
    return both.take(np.random.default_rng(seed).permutation(len(both.pairs)))


def _can_be_in_batch(material: Material, pairs: PairRows) -> npt.NDArray[np.bool_]:
    """Return (n,) whether both items have a positive; none where batches have mined negatives, too."""
    if material.relations.negatives is not None:
        return np.zeros(len(pairs), bool)
    queries, candidates = material.positives_of_queries[:, 0], material.positives_of_candidates[:, 0]
    return np.asarray((queries[pairs.left] != NONE) & (candidates[pairs.right] != NONE))
