"""nDCG, MRR, recall, MAP@R and R-precision of single queries, from the places of their positives in the ranking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.errors import InputError

Values = npt.NDArray[np.float64]

CUTOFFS = (1, 5, 10)  # k, unless others are chosen
NEVER = np.iinfo(np.int64).max  # place of a positive that has no score, and padding
_BLOCK = 1 << 20  # places at a time


def measures(ranks: Rows, positions: Rows, relevant: Rows, cutoffs: Sequence[int]) -> dict[str, Values]:
    """Return (q,) values of every measure by name; rel_r is 1 where the candidate of place r is a positive, else 0.

    - R@k: 100 · [rank of the best positive ≤ k], the hit rate or success; the only one that reads `ranks`.
    - recall@k = 100 / P · Σ_{r ≤ k} rel_r, the share of the positives that are found.
    - nDCG@k = Σ_{r ≤ k} rel_r / log2(r + 1), divided by Σ_{r ≤ min(k, P)} 1 / log2(r + 1) (trec_eval's ndcg_cut).
    - MRR@k = 1 / place of the first positive, 0 behind place k.
    - MAP@R = 1/R · Σ_{r ≤ R} rel_r · precision at r, R = P (Musgrave, Belongie and Lim 2020, A Metric Learning
      Reality Check).
    - R-precision = 1/R · Σ_{r ≤ R} rel_r.

    At k = 1 nDCG and MRR are R@1, and are left out.

    Args:
        ranks: (q,) 0-based, candidates strictly above the best positive.
        positions: (q, p) 0-based places of the positives, ascending, equal candidates in the order of their rows; NEVER
            behind those that have a score.
        relevant: (q,) number of positives P, at least 1.
        cutoffs: k.

    Raises:
        InputError: a k below 1.
    """
    cutoffs = require_cutoffs(cutoffs)
    size = max(1, _BLOCK // max(positions.shape[1], 1))
    slices = [slice(start, start + size) for start in range(0, max(len(ranks), 1), size)]
    parts = [_measures(ranks[part], positions[part], relevant[part], cutoffs) for part in slices]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def require_cutoffs(cutoffs: Sequence[int]) -> tuple[int, ...]:
    """Return every k once, in increasing order. Raises InputError for a k below 1."""
    if any(k < 1 for k in cutoffs):
        raise InputError(f"cut-offs k must be at least 1; got {', '.join(map(str, cutoffs))}")
    return tuple(sorted(set(cutoffs)))


def choose_cutoffs(sides: Sides, cutoffs: Sequence[int] | None) -> tuple[int, ...]:
    """Return k of the measures: as given, else 1, 5 and 10, and none for images and captions."""
    if cutoffs is not None:
        return require_cutoffs(cutoffs)
    return () if sides.is_image_text else CUTOFFS


def _measures(ranks: Rows, positions: Rows, relevant: Rows, cutoffs: Sequence[int]) -> dict[str, Values]:
    above = np.arange(1, positions.shape[1] + 1)  # positives at or above each place
    position: Values = np.minimum(positions, 1 << 52).astype(np.float64) + 1  # from 1
    number: Values = relevant.astype(np.float64)
    gains, in_R = 1 / np.log2(position + 1), position <= number[:, None]
    values: dict[str, Values] = {f"R@{k}": 100.0 * (ranks < k).astype(np.float64) for k in cutoffs}
    for k in cutoffs:
        values[f"recall@{k}"] = 100.0 * (position <= k).sum(1) / number
    for k in [k for k in cutoffs if k > 1]:
        values[f"nDCG@{k}"] = (gains * (position <= k)).sum(1) / _ideal(np.minimum(k, relevant))
    for k in [k for k in cutoffs if k > 1]:
        values[f"MRR@{k}"] = (position[:, 0] <= k) / position[:, 0]
    values["MAP@R"] = (in_R * above / position).sum(1) / number
    values["R-precision"] = in_R.sum(1) / number
    return values


def _ideal(terms: Rows) -> Values:
    """Return Σ_{r ≤ n} 1 / log2(r + 1) of each n (q,)."""
    sums: Values = np.cumsum(1 / np.log2(np.arange(2, int(terms.max(initial=1)) + 2)))[terms - 1]
    return sums
