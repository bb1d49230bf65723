"""Read rows once for their hashes, and in part again for what is shown of them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from lossscope.core.types import Progress

from ..rows.row_source import RowSource
from .base import TextRow
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

    def read(self, progress: Progress | None) -> None:
        size, earlier, last = self.source.size, 0, 0  # bytes: of all files, of those before this one, of this one
        for block in self.source.blocks():
            if self.keys and self.keys[-1][0] != block.key[0]:
                earlier += last
            last = block.done
            self.starts.append(len(self.table))
            self.keys.append(block.key)
            self.table.add(block)
            if progress and size:
                progress(f"{self.name}, MB", min(earlier + last, size) // _MEGABYTE, max(1, size // _MEGABYTE))

    def rows(self, numbers: Collection[int]) -> PlacedRows:
        """Return file, line and texts of some rows; those that are no longer there are left out."""
        blocks = np.searchsorted(self.starts, sorted(numbers), "right") - 1
        starts = {self.keys[block]: self.starts[block] for block in blocks.tolist()}
        rows: PlacedRows = {}
        for block in self.source.blocks(starts.keys()) if starts else ():
            start, positives, negatives = starts.pop(block.key), list(block.positives), list(block.negatives)
            for row in (number - start for number in numbers if start <= number < start + len(block)):
                texts = TextRow(block.queries[row], positives[row], negatives[row])
                rows[start + row] = block.file, int(block.lines[row]), texts
            if not starts:
                break  # the rest of the file is not read again
        return rows
