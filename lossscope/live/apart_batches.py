"""Make batches in which no two rows exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_PATIENCE = 50  # pairs of rows compared to place the leftover rows, for each row of the data

Keys = Callable[[int], Sequence[int]]  # row -> its keys
Excluded = Callable[[int], set[int]]  # row -> the keys that no other row of its batch may have


@dataclass
class _OpenBatch:
    """Rows that do not exclude each other."""

    rows: list[int] = field(default_factory=list)
    excluded: set[int] = field(default_factory=set)  # of its rows

    def add(self, row: int, excluded: set[int]) -> None:
        self.rows.append(row)
        self.excluded |= excluded


def apart_batches(
    order: Sequence[int], keys_of: Keys, excluded_by: Excluded, size: int, expected: int
) -> list[list[int]]:
    """Return batches of at most `size` rows: a row goes into the first batch that has room for it.

    Rows that fit only into a batch after the expected batches are exchanged with rows of earlier batches. So there are
    more batches than expected only if rows exclude too many others.

    Args:
        order: rows, in the order of their placement.
        keys_of: row -> its keys. Rows a and b exclude each other if b excludes a key of a, or a excludes a key of b.
        excluded_by: row -> the keys that no other row of its batch may have.
        size: of a batch.
        expected: number of batches.
    """
    batches = _first_fit(order, keys_of, excluded_by, size)
    kept = batches[:expected]
    late = [row for batch in batches[expected:] for row in batch.rows]
    late = _exchange(kept, late, keys_of, excluded_by, size, _PATIENCE * len(order))
    return [batch.rows for batch in (*kept, *_first_fit(late, keys_of, excluded_by, size))]


def _first_fit(order: Sequence[int], keys_of: Keys, excluded_by: Excluded, size: int) -> list[_OpenBatch]:
    batches: list[_OpenBatch] = []
    unfilled: list[_OpenBatch] = []
    for row in order:
        keys = keys_of(row)
        batch = _first_with_room(unfilled, keys)
        if batch is None:
            batch = _OpenBatch()
            batches.append(batch)
            unfilled.append(batch)
        batch.add(row, excluded_by(row))
        if len(batch.rows) == size:
            unfilled.remove(batch)
            batch.excluded = set()  # never read again
    return batches


def _exchange(
    batches: list[_OpenBatch], late: list[int], keys_of: Keys, excluded_by: Excluded, size: int, patience: int
) -> list[int]:
    """Place rows by exchanges with rows of full batches; return the rows that find no room.

    A row enters a full batch if the row that leaves it fits into a batch that is not full.
    """
    unplaced = []
    for row in late:
        unfilled = [batch for batch in batches if len(batch.rows) < size]
        keys, excluded = keys_of(row), excluded_by(row)
        direct = _first_with_room(unfilled, keys)
        if direct is not None:
            direct.add(row, excluded)
            continue
        placed = False
        for batch in reversed(batches) if unfilled else ():
            if patience <= 0 or placed:
                break
            if len(batch.rows) < size:
                continue
            patience -= size
            opposed = [
                position for position, member in enumerate(batch.rows) if not excluded.isdisjoint(keys_of(member))
            ]
            if len(opposed) > 1:
                continue
            for position in opposed or range(size):
                other = batch.rows[position]
                target = _first_with_room(unfilled, keys_of(other))
                if target is not None:
                    batch.rows[position] = row
                    target.add(other, excluded_by(other))
                    placed = True
                    break
        if not placed:
            unplaced.append(row)
    return unplaced


def _first_with_room(batches: Sequence[_OpenBatch], keys: Sequence[int]) -> _OpenBatch | None:
    """Return the first batch none of whose rows excludes a row of these keys."""
    return next((batch for batch in batches if batch.excluded.isdisjoint(keys)), None)
