"""Queries, documents and pairs of them -> a split: pairs once, negatives as a table, what was merged said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lossscope.core.relations import NONE, Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from ..base import Split, Texts

_MOST_NEGATIVES = 1 << 28  # entries of the table of negatives, 2 GiB


@dataclass
class TextPairs:
    """Queries and documents met so far, by row, and the pairs of them."""

    most: int = 0  # negatives of each query that are kept, the first ones; 0: all
    queries: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    query_ids: list[str] = field(default_factory=list)
    document_ids: list[str] = field(default_factory=list)
    positives: list[tuple[int, int]] = field(default_factory=list)
    negatives: list[tuple[int, int]] = field(default_factory=list)

    scores: list[tuple[int, int, float]] = field(default_factory=list)  # of pairs, where the data have scores

    def split(self, name: str, notices: Sequence[str] = ()) -> Split:
        """Return the split; pairs that occur twice are one, and a positive is no negative of its query.

        Args:
            name: of the split.
            notices: what the user should know of how it was read, beside what is learnt here.
        """
        positives = _unique(self.positives)
        negatives = _unique(self.negatives)
        is_positive = np.isin(_keys(negatives), _keys(positives))
        table = _padded(negatives[~is_positive], len(self.queries), self.most)
        size = (len(self.queries), len(self.documents))
        relations = Relations(*size, positives, QUERY_DOCUMENT, negatives=table)
        owners = len(np.unique(negatives[is_positive, 0]))
        told = [f"positives of {owners} queries are among their negatives, and left out there"] if owners else []
        empty = sum(not text.strip() for text in (*self.queries, *self.documents))
        told += [f"{empty} queries or documents are empty texts"] if empty else []
        return Split(
            name,
            Texts(self.queries),
            self.documents,
            None,
            self.query_ids or [f"{name}-q{row:05d}" for row in range(size[0])],
            self.document_ids or [f"{name}-d{row:05d}" for row in range(size[1])],
            self._fingerprint(name, positives, table),
            relations=relations,
            notices=(*notices, *told),
            scores=self.scores,
        )

    def _fingerprint(self, name: str, positives: Rows, negatives: Rows | None) -> str:
        texts = (*self.queries, *self.documents, *self.query_ids, *self.document_ids)
        mined = b"" if negatives is None else negatives.tobytes()
        return fingerprint_of(name, str(len(self.queries)), *texts, positives.tobytes(), mined)


def _keys(pairs: Rows) -> Rows:
    return pairs[:, 0] << 32 | pairs[:, 1]


def _unique(pairs: Sequence[tuple[int, int]]) -> Rows:
    """Return pairs (n, 2), each once, in the order in which they first occur."""
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    _, first = np.unique(_keys(table), return_index=True)
    return table[np.sort(first)]


def _padded(negatives: Rows, queries: int, most: int) -> Rows | None:
    """Return (queries, k) the negatives of each query in their order, -1 behind them; None where nobody has any."""
    if not len(negatives):
        return None
    ordered = negatives[np.argsort(negatives[:, 0], kind="stable")]
    counts = np.bincount(ordered[:, 0], minlength=queries)
    within = np.arange(len(ordered)) - np.repeat(np.cumsum(counts) - counts, counts)
    k = min(int(counts.max()), most or len(ordered))
    if k * queries > _MOST_NEGATIVES:
        raise InputError(
            f"negatives of {queries} queries must be at most {_MOST_NEGATIVES // queries} each to fit into memory; one "
            f"has {k}: write negatives=K to keep the first K"
        )
    table = np.full((queries, k), NONE, dtype=np.int64)
    kept = within < k
    table[ordered[kept, 0], within[kept]] = ordered[kept, 1]
    return table
