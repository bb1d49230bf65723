"""S in tiles of bfloat16 products, with every cell that their error leaves undecided made again exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.base import Undecided
from lossscope.objectives.counting.buffers import Buffers

from .matrix import Tile, TiledMatrix, row_slices
from .sparse_mask import SparseMask

_SHARE = 128  # one cell in so many is made again at most: more takes as long as a float32 product
_LONGEST = 64  # tiles that are made in float32 at most before bfloat16 is tried again
_TIED = 4  # one query in so many may be tied at most
_BLOCK = 1 << 16  # numbers of one side that exact cells are made of at once: their float64 copies stay in a cache


@dataclass(frozen=True)
class Rounded:
    """(n, d) vectors in bfloat16 and the lengths, (n,), of these, of the vectors, and of what rounding took."""

    values: Tensor
    kept: Tensor
    whole: Tensor
    lost: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Rounded:
        """Of float32 vectors."""
        values, length = x.bfloat16(), partial(torch.linalg.vector_norm, dim=1)
        parts = torch.split(values, 1024)
        lost = [length(a - b) for a, b in zip(torch.split(x, 1024), parts, strict=True)]
        kept = [length(part.float()) for part in parts]
        return cls(values, torch.cat(kept), length(x), torch.cat(lost))


class Bfloat16Tiles:
    """A matrix whose tiles are bfloat16 products; float32 ones for a while where these left too much undecided.

    A cell v·t is off by at most |v − v'||t| + |v'||t − t'| + d 2⁻²³ |v'||t'|, v' and t' the rounded vectors, before it
    is rounded itself, which keeps the order of cells. Raises InputError for what is not float32 vectors on a CPU.
    """

    def __init__(self, matrix: TiledMatrix, space: Buffers) -> None:
        if matrix.images is None or matrix.captions is None:
            raise InputError("--precision bf16 must be given embeddings; got similarities. Use --precision float32")
        kind = (matrix.images.device.type, matrix.images.dtype)
        if kind != ("cpu", torch.float32):
            raise InputError(
                f"--precision bf16 must be given float32 embeddings on a CPU; got {kind[1]} on {kind[0]}. "
                "Use --precision float32"
            )
        self.matrix, self.space = matrix, space
        self.images, self.captions = matrix.images, matrix.captions
        self._rounded = Rounded.of(self.images), Rounded.of(self.captions)
        self._wait = self._left = 0

    def positives(self, relation: SparseMask) -> Tensor:
        """(k,) similarities of the positive cells."""
        return self.exact(relation.positives.rows, relation.positives.columns)

    def exact(self, rows: Tensor, columns: Tensor) -> Tensor:
        """(k,) similarities of some cells: sums in float64, rounded once; of equal vectors they are equal."""
        found, size = self.images.new_empty(len(rows)), max(_BLOCK // max(self.images.shape[1], 1), 1)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            found[part] = self.images[rows[part]].double().mul_(self.captions[columns[part]]).sum(1)
        return found

    def tiles(self, rows: list[slice], columns: list[slice], space: Buffers) -> Iterator[Tile]:
        """Every tile of some runs of rows, row by row; rounded ones are to be settled before they are looked at."""
        v, t = (side.values for side in self._rounded)
        for part in rows:
            for run in columns:
                if self._left:
                    self._left -= 1
                    yield self.product(part, run)
                    continue
                shape = (part.stop - part.start, run.stop - run.start)
                S = space.room("tile", shape, torch.float32, self.images.device)
                S.copy_(torch.mm(v[part], t[run].T, out=space.room("rounded", shape, torch.bfloat16, v.device)))
                yield Tile(S, part, run, rounded=True)

    def error(self, tile: Tile) -> tuple[Tensor, Tensor]:
        """(r,) and (w,) how far the cells of each row, and of each column, are off at most."""
        (v, t), d = self._rounded, self.images.shape[1]
        part = [
            Rounded(side.values[:0], side.kept[own], side.whole[own], side.lost[own])
            for side, own in ((v, tile.rows), (t, tile.columns))
        ]
        own, other = part
        return _error(own, other, d), _error(other, own, d)

    def level(self, tile: Tile, best: Pair[Tensor], relation: SparseMask) -> list[Tensor]:
        """Places of positives of queries that have a cell in a float32 tile which may be level with their best one."""
        cells = relation.positives
        own = ((cells.rows, tile.rows), (cells.columns, tile.columns))
        found = []
        for (queries, part), known, tied in zip(own, best, self._tied(tile, best), strict=True):
            met = torch.zeros(len(known), dtype=torch.bool)
            met[part] = tied
            found.append(met[queries].nonzero()[:, 0])
        return found

    def _tied(self, tile: Tile, best: Pair[Tensor]) -> tuple[Tensor, Tensor]:
        """(r,) and (w,) bool: those queries."""
        (v, t), d = self._rounded, self.images.shape[1]
        width = 2.0**-22 * (d + 8) * float(v.whole[tile.rows].amax() * t.whole[tile.columns].amax())

        def tied(known: Tensor, dim: int) -> Tensor:
            apart = torch.sub(tile.S, known.unsqueeze(dim), out=self.space.like(tile.S)).abs_()
            return apart.amin(dim) <= width

        return tied(best.i2t[tile.rows], 1), tied(best.t2i[tile.columns], 0)

    def collapsed(self, hide: Callable[[Tile], Tile], best: Pair[Tensor], rows: int, columns: int) -> bool:
        """Whether so many queries of the first tile may be tied that to rank them anew costs more than is won."""
        n, m = self.matrix.shape
        corner = hide(self.product(row_slices(n, rows)[0], row_slices(m, columns)[0]))
        met = sum(int(tied.sum()) for tied in self._tied(corner, best))
        return _TIED * met > sum(corner.S.shape)

    def settled(self, tile: Tile, undecided: Sequence[tuple[Undecided, int]]) -> bool:
        """Make undecided cells of a rounded tile exact; False where they are too many: it must be made in float32.

        undecided: bounds of queries, and the dimension that their candidates lie along.
        """
        places = self._places(tile.S, undecided)
        if places is None:
            self._wait = min(max(2 * self._wait, 1), _LONGEST)
            self._left = self._wait
            return False
        self._wait = 0
        row, column = places // tile.S.shape[1], places % tile.S.shape[1]
        tile.S.view(-1)[places] = self.exact(row + tile.rows.start, column + tile.columns.start)
        return True

    def product(self, rows: slice, columns: slice) -> Tile:
        """A tile in float32, in the room of the last one."""
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        S = self.space.room("tile", shape, torch.float32, self.images.device)
        return Tile(torch.mm(self.images[rows], self.captions[columns].T, out=S), rows, columns)

    def _places(self, S: Tensor, undecided: Sequence[tuple[Undecided, int]]) -> Tensor | None:
        """(k,) flat places of undecided cells; None where they are too many or nothing bounds the error."""
        found: list[np.ndarray] = []
        truth = self.space.room("truth", tuple(S.shape), torch.bool, S.device).numpy()
        flat, limit = S.view(-1).numpy(), S.numel()
        for (low, high), dim in undecided:
            if bool(low.isnan().any()):
                return None
            np.greater_equal(S.numpy(), low.unsqueeze(dim).numpy(), out=truth)
            places = np.flatnonzero(truth)
            if high is not None and len(places):
                query = places // S.shape[1] if dim == 1 else places % S.shape[1]
                places = places[flat[places] <= high.numpy()[query]]
            if len(places) * _SHARE > limit:
                return None
            found.append(places)
        places = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        return None if len(places) * _SHARE > limit else torch.from_numpy(places)


def require_comparisons(objectives: Sequence[Objective]) -> None:
    """Raise InputError for an objective that needs the exact value of every cell."""
    for objective in objectives:
        if objective.counting_rule is not None and not objective.counting_rule.compares:
            raise InputError(
                "--precision bf16 must be used with objectives that only compare similarities; got "
                f"{type(objective).__name__}, which adds up exponentials of every similarity; use --precision float32"
            )


def _error(own: Rounded, other: Rounded, d: int) -> Tensor:
    """(r,) of `own` with any of `other`; what underflows, and the rounding of exact cells, is in the last terms."""
    sums = 2.0**-23 * (d + 8) * own.kept * other.kept.amax()
    lost = own.lost * other.whole.amax() + own.kept * other.lost.amax() + 2.0**-22 * own.whole * other.whole.amax()
    return (lost + sums) * (1 + 2.0**-12) + 2.0**-100
