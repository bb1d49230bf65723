"""What the numbers of a sample of queries are, in words: where those of all queries of the set are."""

from __future__ import annotations

import pandas as pd

SAMPLED = "queries, all candidates"  # how the sampling of such rows ends


def is_sample(sampling: object) -> bool:
    """Return whether rows of this sampling are of some queries, not all."""
    return str(sampling).endswith(SAMPLED)


def sample_note(rows: pd.DataFrame) -> list[str]:
    """Return a footnote on summary rows of a sample; none for others."""
    sampled = bool(rows["sampling"].map(is_sample).any())
    return ["Estimates for all queries of this set, not for other items like these."] if sampled else []
