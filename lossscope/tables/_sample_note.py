"""What the numbers of a sample of queries are, in words: where those of all queries of the set are."""

from __future__ import annotations

import pandas as pd

SAMPLED = "queries, all candidates"  # how the sampling of such rows ends

_TIES = (
    "Ties are judged by all digits of float32: copies of an item among the candidates may come out a last bit before "
    "or behind the positive, which moves its rank. lossscope eval ranks each item once."
)


def is_sample(sampling: object) -> bool:
    """Return whether rows of this sampling are of some queries, not all."""
    return str(sampling).endswith(SAMPLED)


def sample_note(rows: pd.DataFrame) -> list[str]:
    """Return footnotes on summary rows of a sample, and on ranks that last bits decide; none for others."""
    if not rows["sampling"].map(is_sample).any():
        return []
    tied = bool((rows.loc[rows["statistic"] == "ties", "mean"] > 0).any())
    return ["Estimates for all queries of this set, not for other items like these.", *([_TIES] if tied else [])]
