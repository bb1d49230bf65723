"""S in tiles: the product of two sides piece by piece, into room that is used again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from lossscope.core.batches import Rows
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import Direction
from lossscope.objectives.counting.buffers import Buffers

_THIN = 32
ROWS, COLUMNS = 256, 4096  # of a tile: 4 MB, which the caches of a core hold


@dataclass(frozen=True)
class Tile:
    """(r, w) similarities of some rows with some columns; to be overwritten by the next one. rounded: a product in
    bfloat16, of which undecided cells are not exact yet."""

    S: Tensor
    rows: slice
    columns: slice
    rounded: bool = False


@dataclass(frozen=True, eq=False)
class TiledMatrix:
    """S (n, m) of n images and m captions of a source, made where it is looked at."""

    embedded: SplitEmbeddings
    image_rows: Rows
    caption_rows: Rows

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return len(self.image_rows), len(self.caption_rows)

    @property
    def any(self) -> Tensor:
        """A tensor of the type and on the device of S."""
        found = self.embedded.images if self.embedded.images is not None else self.embedded.similarity
        assert found is not None, "tiles need embeddings or similarities"
        return found

    @cached_property
    def images(self) -> Tensor | None:
        """(n, d), None where only similarities are known; no copy where rows follow one another."""
        return None if self.embedded.images is None else _taken(self.embedded.images, self.image_rows)

    @cached_property
    def captions(self) -> Tensor | None:
        """(m, d) likewise."""
        return None if self.embedded.captions is None else _taken(self.embedded.captions, self.caption_rows)

    def panel(self, images: slice | Tensor, captions: slice | Tensor) -> Tensor:
        """(r, w) similarities, a tensor of its own."""
        if self.images is not None and self.captions is not None:
            return self.images[images] @ self.captions[captions].T
        assert self.embedded.similarity is not None
        rows = torch.from_numpy(self.image_rows)[images]
        return self.embedded.similarity[rows][:, torch.from_numpy(self.caption_rows)[captions]]

    def lines(self, queries: Tensor, direction: Direction) -> Tensor:
        """(k, candidates) whole rows of some queries of a direction.

        Few are made among copies of theirs: a thin product may add up its columns in different orders.
        """
        some = queries.repeat(-(-_THIN // max(len(queries), 1))) if len(queries) < _THIN else queries
        if direction == "i2t":
            return self.panel(some, slice(0, self.shape[1]))[: len(queries)]
        return self.panel(slice(0, self.shape[0]), some)[:, : len(queries)].T.contiguous()

    def tiles(self, rows: list[slice], columns: list[slice], space: Buffers) -> Iterator[Tile]:
        """Every tile of some runs of rows, row by row."""
        for part in rows:
            for run in columns:
                if self.images is None or self.captions is None:
                    yield Tile(self.panel(part, run), part, run)
                    continue
                shape = (part.stop - part.start, run.stop - run.start)
                room = space.room("tile", shape, self.images.dtype, self.images.device)
                yield Tile(torch.mm(self.images[part], self.captions[run].T, out=room), part, run)


def row_slices(n: int, size: int) -> list[slice]:
    """0..n-1 in runs of at most `size`, as even as can be: a run of one would be multiplied in another order."""
    number = max(-(-n // size), 1)
    edges = [n * i // number for i in range(number + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _taken(side: Tensor, rows: Rows) -> Tensor:
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool((rows[1:] > rows[:-1]).all()):
        return side[int(rows[0]) : int(rows[-1]) + 1]
    return side[torch.from_numpy(rows)]
