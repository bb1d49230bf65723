"""Late interaction: the score of two lists of token vectors, the sum of each query token's best document token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossscope.core.types import Rows
from lossscope.errors import InputError

from ._dump_arrays import numpy_of, unit_matrix

_ENTRIES = 1 << 24  # products of tokens at a time


@dataclass(frozen=True)
class TokenVectors:
    """The token vectors of the items of one side, one list after the other."""

    vectors: Tensor  # (T, d) of unit length
    offsets: Rows  # (n + 1,) item i has the tokens offsets[i] .. offsets[i + 1] - 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: Rows) -> tuple[Tensor, Rows]:
        """Return the tokens of some items, (t, d), and the number of each item's, (n,)."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        starts = np.repeat(self.offsets[rows] - (np.cumsum(lengths) - lengths), lengths)
        return self.vectors[torch.from_numpy(starts + np.arange(len(starts)))], lengths


@dataclass(frozen=True)
class MaxSimScorer:
    """s(q, d) = Σ over tokens i of q of max over tokens j of d of q_i · d_j.

    At most the number of the query's tokens: no cosine. Computed in chunks of documents.
    Source: Khattab & Zaharia 2020 (ColBERT), eq. 3.
    """

    queries: TokenVectors
    documents: TokenVectors

    def __call__(self, query_rows: Rows, document_rows: Rows) -> Tensor:
        """Return S (n, m) of some queries and documents."""
        tokens, lengths = self.queries.take(query_rows)
        words = self.documents.offsets[document_rows + 1] - self.documents.offsets[document_rows]
        size = max(_ENTRIES // max(len(tokens) * int(words.max(initial=1)), 1), 1)
        chunks = [document_rows[start : start + size] for start in range(0, len(document_rows), size)]
        best = torch.cat([self._best(tokens, chunk) for chunk in chunks], 1)
        owners = torch.from_numpy(np.repeat(np.arange(len(query_rows)), lengths))
        return best.new_zeros(len(query_rows), best.shape[1]).index_add_(0, owners.to(best.device), best)

    def _best(self, tokens: Tensor, documents: Rows) -> Tensor:
        """(t, m) the largest product of each token with the tokens of each document."""
        others, lengths = self.documents.take(documents)
        starts = np.cumsum(lengths) - lengths  # no document is without tokens
        return torch.from_numpy(np.maximum.reduceat((tokens @ others.T).numpy(), starts, axis=1))


def token_vectors(arrays: Mapping[str, Any], side: str, path: Path, notices: list[str]) -> TokenVectors:
    """Return the token vectors of a side: `query_tokens` (T, d) and `query_offsets` (n + 1,).

    Raises InputError where one is missing, of another shape, or an item has no token.
    """
    names = f"{side}_tokens", f"{side}_offsets"
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputError(f"{path} must hold {names[0]} (T, d) and {names[1]} (n + 1,); it lacks {', '.join(missing)}")
    vectors = unit_matrix(arrays[names[0]], f"{names[0]} of {path}", notices)
    offsets = numpy_of(arrays[names[1]])
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu":
        raise InputError(f"{names[1]} of {path} must be (n + 1,) whole numbers; got {offsets.shape} of {offsets.dtype}")
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != len(vectors) or bool((np.diff(offsets) < 1).any()):
        raise InputError(
            f"{names[1]} of {path} must rise from 0 to {len(vectors)}, the number of tokens, by 1 or more; "
            f"got {int(offsets[0])}..{int(offsets[-1])}"
        )
    return TokenVectors(vectors.float(), offsets)
