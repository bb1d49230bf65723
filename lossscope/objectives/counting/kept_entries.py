"""The entries of S that can still count, kept until the sums that decide are complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from .large_entries import LargeEntries

Filter = Callable[[Tensor, Tensor], Tensor]  # (queries, similarities) -> bool, entries that can still count
PER_QUERY = 128  # entries of a query that are kept, on average


class KeptEntries:
    """Entries of S by query and similarity, which are filtered when they have doubled.

    `full` is set when too many remain; then no entries are kept any longer.
    """

    def __init__(self, queries: int, keep: Literal["none", "some", "all"]) -> None:
        self.capacity, self.may_be_full, self.full = PER_QUERY * queries, keep == "some", keep == "none"
        self._queries: list[Tensor] = []
        self._similarities: list[Tensor] = []
        self._number = self._number_after_filter = 0

    def add(self, entries: LargeEntries, rows: slice, can_count: Filter) -> None:
        """Keep some entries of a block, whose queries are `rows`."""
        if len(entries.queries) and not self.full:
            self._append(entries.queries.int() + rows.start, entries.values, can_count)

    def merge(self, other: KeptEntries, can_count: Filter) -> None:
        """Keep the entries of other blocks, too."""
        self.full = self.full or other.full
        if self.full:
            self._clear()
        for queries, similarities in zip(other._queries, other._similarities, strict=True):
            if not self.full:
                self._append(queries, similarities, can_count)

    def _append(self, queries: Tensor, similarities: Tensor, can_count: Filter) -> None:
        self._queries.append(queries)
        self._similarities.append(similarities)
        self._number += len(queries)
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
            self._clear()

    def _clear(self) -> None:
        self._queries, self._similarities, self._number = [], [], 0

    def entries(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the queries, (m,) int32, and the similarities, (m,), of all entries."""
        if not self._queries:
            return torch.zeros(0, dtype=torch.int32, device=device), torch.zeros(0, device=device)
        return torch.cat(self._queries), torch.cat(self._similarities)

    def numbers(self, device: torch.device) -> tuple[Tensor, Tensor] | None:
        """Return `entries`; None where they were too many."""
        return None if self.full else self.entries(device)

    def load(self, numbers: tuple[Tensor, Tensor] | None) -> None:
        """Keep the entries of `numbers` of another state."""
        self._clear()
        self.full = numbers is None
        if numbers is not None:
            self._queries, self._similarities, self._number = [numbers[0]], [numbers[1]], len(numbers[0])
