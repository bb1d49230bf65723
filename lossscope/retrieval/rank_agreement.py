"""Do similarities order pairs as their scores do? Spearman's correlation, as in semantic textual similarity."""

from __future__ import annotations

import numpy as np

from lossscope.core.embedded import SplitEmbeddings

_BLOCK = 1024  # pairs at a time
_LEAST = 3  # different scores, below which their order says no more than the positives do


def rank_agreement(embedded: SplitEmbeddings) -> float | None:
    """Spearman's rho of s(query, candidate) and score over all pairs that have scores; ties share their mean rank.

    None without scores, and for scores of two values, such as labels of 0 and 1.

    Source: Cer et al. 2017 (STS benchmark), section 4; sentence-transformers' EmbeddingSimilarityEvaluator.
    """
    scores = np.array([score for _, _, score in embedded.scores])
    if len(np.unique(scores)) < _LEAST:
        return None
    pairs = np.array([(query, candidate) for query, candidate, _ in embedded.scores], dtype=np.int64)
    similarities = []
    for start in range(0, len(pairs), _BLOCK):
        part = pairs[start : start + _BLOCK]
        rows, row_of = np.unique(part[:, 0], return_inverse=True)
        columns, column_of = np.unique(part[:, 1], return_inverse=True)
        S = embedded.similarities(rows, columns).i2t.cpu().numpy()
        similarities.append(S[row_of, column_of])
    from scipy.stats import spearmanr  # a third of a second

    return float(spearmanr(np.concatenate(similarities), scores).statistic)
