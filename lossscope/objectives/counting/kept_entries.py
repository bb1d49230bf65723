"""The entries of tiles that can still count, kept until the sums that decide are complete."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .large_entries import LargeEntries

Filter = Callable[[Tensor, Tensor], Tensor]  # (queries, similarities) -> bool, entries that can still count


class KeptEntries:
    """Entries of S by query and similarity, which are filtered when there are too many.

    `full` is set when too many remain after filtering; then no entries are kept any longer, unless `may_be_full` is
    False.
    """

    def __init__(self, queries: int, per_query: int = 128) -> None:
        self.capacity = per_query * queries
        self.full, self.may_be_full = False, True
        self._queries: list[Tensor] = []
        self._similarities: list[Tensor] = []
        self._number = self._number_after_filter = 0

    def add(self, entries: LargeEntries, rows: slice, can_count: Filter) -> None:
        """Keep some entries of a tile.

        Args:
            entries: of the tile.
            rows: the queries of the tile.
            can_count: filter for when there are too many.
        """
        if len(entries.queries) == 0:
            return
        self._queries.append(entries.queries.int() + rows.start)
        self._similarities.append(entries.values)
        self._number += len(entries.queries)
        if self._number > self.capacity and self._number > 2 * self._number_after_filter:
            self.filter(can_count)

    def filter(self, can_count: Filter) -> None:
        """Keep the entries that can still count; none where these are too many."""
        if not self._queries:
            return
        queries, similarities = self.entries(self._queries[0].device)
        kept = can_count(queries, similarities)
        self._queries, self._similarities = [queries[kept]], [similarities[kept]]
        self._number = self._number_after_filter = len(self._queries[0])
        if self.may_be_full and self._number > self.capacity:
            self.full = True
            self.clear()

    def clear(self) -> None:
        """Discard all entries."""
        self._queries, self._similarities, self._number = [], [], 0

    def entries(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the queries, (m,) int32, and the similarities, (m,), of all entries."""
        if not self._queries:
            return torch.zeros(0, dtype=torch.int32, device=device), torch.zeros(0, device=device)
        return torch.cat(self._queries), torch.cat(self._similarities)

    def replace(self, queries: Tensor, similarities: Tensor) -> None:
        """Replace all entries."""
        self._queries, self._similarities, self._number = [queries], [similarities], len(queries)
