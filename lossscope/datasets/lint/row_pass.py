"""Read rows once for their hashes, and in part again to compare them and for what is shown of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from lossscope.core.types import Progress, Rows
from lossscope.errors import InputError

from ..rows.row_block import RowBlock
from ..rows.row_source import RowSource
from .base import TextRow
from .hashes import text_hashes
from .near_pairs import find_pairs
from .near_search import compare, near_rows
from .row_hashes import RowHashes

PlacedRows = dict[int, tuple[str, int, TextRow]]  # row -> its file, line and texts
_MEGABYTE = 1 << 20


class RowPass:
    """The rows of one split, which are read once for their hashes, and in part again for examples."""

    def __init__(self, name: str, source: RowSource, max_words: int, counted: bool = True) -> None:
        self.name, self.source, self.counted = name, source, counted
        self.table = RowHashes(max_words)
        self.starts: list[int] = []  # first row of each block
        self.keys: list[tuple[int, int]] = []
        self.notices: dict[str, tuple[str, ...]] = {}  # of each file, the last ones

    def read(self, progress: Progress | None) -> None:
        size, earlier, last = self.source.size, 0, 0  # bytes: of all files, of those before this one, of this one
        for block in self.source.blocks():
            if self.keys and self.keys[-1][0] != block.key[0]:
                earlier += last
            last = block.done
            self.starts.append(len(self.table))
            self.keys.append(block.key)
            self.table.add(block)
            self.notices[block.file] = block.notices
            if progress and size:
                progress(f"{self.name}, MB", min(earlier + last, size) // _MEGABYTE, max(1, size // _MEGABYTE))

        if self.counted:
            self._search_near_duplicates()

    def rows(self, numbers: Collection[int]) -> PlacedRows:
        """Return file, line and texts of some rows; those that are no longer there are left out."""
        rows: PlacedRows = {}
        for start, block in self._blocks(np.array(sorted(numbers), np.int64)):
            positives, negatives = list(block.positives), list(block.negatives)
            for row in (number - start for number in numbers if start <= number < start + len(block)):
                texts = TextRow(block.queries[row], positives[row], negatives[row])
                rows[start + row] = block.file, int(block.lines[row]), texts
        return rows

    def _search_near_duplicates(self) -> None:
        """Compare positives that share a key, and note which rows have near copies of those of earlier rows."""
        table = self.table
        found = find_pairs(table.positives, table.near_keys)
        positions = np.unique(found.pairs)
        near = compare(found.pairs, positions, self._positives(positions)) if len(positions) else found.pairs
        table.near_duplicates = near_rows(near, table.positives, table.positive_counts, found.cut)

    def _positives(self, positions: Rows) -> Iterator[tuple[Rows, list[str]]]:
        """Yield places of positives, and their texts. Raises InputError where these are no longer there."""
        ends = np.concatenate(([0], np.cumsum(self.table.positive_counts, dtype=np.int64)))
        read = 0
        for start, block in self._blocks(np.searchsorted(ends, positions, "right") - 1):
            begin, end = np.searchsorted(positions, (ends[start], ends[min(start + len(block), len(ends) - 1)]))
            within, texts = positions[begin:end], block.positives.texts
            texts = [texts[index] for index in (within - ends[start]).tolist() if index < len(texts)]
            if not np.array_equal(text_hashes(texts), self.table.positives[within]):
                break
            read += len(within)
            yield within, texts
        if read < len(positions):
            raise InputError(f"{self.name} must not change during lint; its second reading gave other rows")

    def _blocks(self, rows: Rows) -> Iterator[tuple[int, RowBlock]]:
        """Yield the first row of each block that holds some of these sorted rows, and the block."""
        blocks = np.unique(np.searchsorted(self.starts, rows, "right") - 1)
        starts = {self.keys[block]: self.starts[block] for block in blocks.tolist()}
        for block in self.source.blocks(starts.keys()) if starts else ():
            yield starts.pop(block.key), block
            if not starts:
                break  # the rest of the file is not read again
