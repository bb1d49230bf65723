"""S in tiles of bfloat16 products, where every entry that their error leaves undecided is computed again exactly."""

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
from lossscope.objectives.counting.base import UndecidedRange
from lossscope.objectives.counting.buffers import Buffers

from .matrix import Tile, TiledMatrix, row_slices
from .sparse_mask import SparseMask

_SHARE = 128  # at most 1 entry in 128 is computed again: more takes as long as a float32 product
_MAX_PAUSE = 64  # at most 64 tiles are computed in float32 before bfloat16 is tried again
_TIED = 4  # at most 1 query in 4 may be tied
_BLOCK = (
    1 << 16
)  # numbers of one side that exact entries are computed from at once: their float64 copies stay in a cache


@dataclass(frozen=True)
class RoundedVectors:
    """Vectors in bfloat16, and the norms that bound the error of their products."""

    values: Tensor  # (n, d) bfloat16
    rounded_norm: Tensor  # (n,) of the rounded vectors
    norm: Tensor  # (n,) of the vectors before rounding
    error_norm: Tensor  # (n,) of the difference

    @classmethod
    def of(cls, x: Tensor) -> RoundedVectors:
        """Round float32 vectors, (n, d)."""
        values, norm = x.bfloat16(), partial(torch.linalg.vector_norm, dim=1)
        blocks = torch.split(values, 1024)
        error_norm = [norm(a - b) for a, b in zip(torch.split(x, 1024), blocks, strict=True)]
        rounded_norm = [norm(block.float()) for block in blocks]
        return cls(values, torch.cat(rounded_norm), norm(x), torch.cat(error_norm))


class Bfloat16Tiles:
    """A matrix whose tiles are bfloat16 products, or float32 products for a while after too many were undecided.

    An entry v·t is off by at most |v − v'||t| + |v'||t − t'| + d 2⁻²³ |v'||t'|, with v' and t' the rounded vectors,
    before it is rounded itself, which keeps the order of entries.
    Raises InputError unless the matrix has float32 embeddings on a CPU.
    """

    def __init__(self, matrix: TiledMatrix, buffers: Buffers) -> None:
        if matrix.images is None or matrix.captions is None:
            raise InputError("--precision bf16 must be given embeddings; got similarities. Use --precision float32")
        kind = (matrix.images.device.type, matrix.images.dtype)
        if kind != ("cpu", torch.float32):
            raise InputError(
                f"--precision bf16 must be given float32 embeddings on a CPU; got {kind[1]} on {kind[0]}. "
                "Use --precision float32"
            )
        self.matrix, self.buffers = matrix, buffers
        self.images, self.captions = matrix.images, matrix.captions
        self._rounded = RoundedVectors.of(self.images), RoundedVectors.of(self.captions)
        self._pause = 0  # float32 tiles after the last tile with too many undecided entries
        self._pause_left = 0  # those of them that are still to come

    def positives(self, mask: SparseMask) -> Tensor:
        """(k,) exact similarities of the positive entries."""
        return self.exact(mask.positives.rows, mask.positives.columns)

    def exact(self, rows: Tensor, columns: Tensor) -> Tensor:
        """(k,) similarities of some entries: sums in float64, rounded once, so that equal vectors give equal ones."""
        exact, size = self.images.new_empty(len(rows)), max(_BLOCK // max(self.images.shape[1], 1), 1)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            exact[part] = self.images[rows[part]].double().mul_(self.captions[columns[part]]).sum(1)
        return exact

    def tiles(self, rows: list[slice], columns: list[slice], buffers: Buffers) -> Iterator[Tile]:
        """Yield every tile, row by row; rounded tiles must pass `make_exact` before they are used."""
        v, t = (vectors.values for vectors in self._rounded)
        for row_slice in rows:
            for column_slice in columns:
                if self._pause_left:
                    self._pause_left -= 1
                    yield self.product(row_slice, column_slice)
                    continue
                shape = (row_slice.stop - row_slice.start, column_slice.stop - column_slice.start)
                S = buffers.get("tile", shape, torch.float32, self.images.device)
                rounded = buffers.get("rounded", shape, torch.bfloat16, v.device)
                S.copy_(torch.mm(v[row_slice], t[column_slice].T, out=rounded))
                yield Tile(S, row_slice, column_slice, rounded=True)

    def error(self, tile: Tile) -> tuple[Tensor, Tensor]:
        """Return the largest error of an entry in each row, (r,), and in each column, (w,), of a rounded tile."""
        (v, t), d = self._rounded, self.images.shape[1]
        own, other = (
            RoundedVectors(
                vectors.values[:0], vectors.rounded_norm[part], vectors.norm[part], vectors.error_norm[part]
            )
            for vectors, part in ((v, tile.rows), (t, tile.columns))
        )  # fmt: skip
        return _largest_error(own, other, d), _largest_error(other, own, d)

    def tied_positives(self, tile: Tile, best: Pair[Tensor], mask: SparseMask) -> list[Tensor]:
        """Return the positives of queries for which an entry of a float32 tile may equal the best positive.

        Args:
            tile: a float32 product.
            best: (n,) and (m,) similarity of the best positive of each query.
            mask: of the direction i2t.

        Returns:
            Indices in the list of positive entries, of the queries of i2t and of those of t2i.
        """
        positives = mask.positives
        queries_of = ((positives.rows, tile.rows), (positives.columns, tile.columns))
        indices = []
        for (queries, part), best_of, tied in zip(queries_of, best, self._tied_queries(tile, best), strict=True):
            is_tied = torch.zeros(len(best_of), dtype=torch.bool)
            is_tied[part] = tied
            indices.append(is_tied[queries].nonzero()[:, 0])
        return indices

    def _tied_queries(self, tile: Tile, best: Pair[Tensor]) -> tuple[Tensor, Tensor]:
        """(r,) and (w,) bool: an entry of the tile may equal the best positive of the row, or of the column."""
        (v, t), d = self._rounded, self.images.shape[1]
        width = 2.0**-22 * (d + 8) * float(v.norm[tile.rows].amax() * t.norm[tile.columns].amax())

        def is_near(best_of: Tensor, dim: int) -> Tensor:
            distance = torch.sub(tile.S, best_of.unsqueeze(dim), out=self.buffers.empty_like(tile.S)).abs_()
            return distance.amin(dim) <= width

        return is_near(best.i2t[tile.rows], 1), is_near(best.t2i[tile.columns], 0)

    def has_many_ties(self, hide: Callable[[Tile], Tile], best: Pair[Tensor], rows: int, columns: int) -> bool:
        """Return whether ranking the queries of the first tile that may be tied again would cost more than it saves.

        Args:
            hide: sets the entries of a tile that are not negatives to −inf.
            best: (n,) and (m,) similarity of the best positive of each query.
            rows: of a tile.
            columns: of a tile.
        """
        n, m = self.matrix.shape
        corner = hide(self.product(row_slices(n, rows)[0], row_slices(m, columns)[0]))
        number = sum(int(tied.sum()) for tied in self._tied_queries(corner, best))
        return _TIED * number > sum(corner.S.shape)

    def make_exact(self, tile: Tile, undecided: Sequence[tuple[UndecidedRange, int]]) -> bool:
        """Compute the undecided entries of a rounded tile exactly, in place.

        Returns False where they are too many: then the tile must be computed in float32.

        Args:
            tile: a rounded tile.
            undecided: ranges of entries, and the dimension along which their candidates are.
        """
        indices = self._undecided_indices(tile.S, undecided)
        if indices is None:
            self._pause = min(max(2 * self._pause, 1), _MAX_PAUSE)
            self._pause_left = self._pause
            return False
        self._pause = 0
        row, column = indices // tile.S.shape[1], indices % tile.S.shape[1]
        tile.S.view(-1)[indices] = self.exact(row + tile.rows.start, column + tile.columns.start)
        return True

    def product(self, rows: slice, columns: slice) -> Tile:
        """Return a tile in float32, in the memory of the last tile."""
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        S = self.buffers.get("tile", shape, torch.float32, self.images.device)
        return Tile(torch.mm(self.images[rows], self.captions[columns].T, out=S), rows, columns)

    def _undecided_indices(self, S: Tensor, undecided: Sequence[tuple[UndecidedRange, int]]) -> Tensor | None:
        """(k,) flat indices of undecided entries; None where they are too many or nothing bounds the error."""
        indices: list[np.ndarray] = []
        comparison = self.buffers.get("truth", tuple(S.shape), torch.bool, S.device).numpy()
        flat, limit = S.view(-1).numpy(), S.numel()
        for (low, high), dim in undecided:
            if bool(low.isnan().any()):
                return None
            np.greater_equal(S.numpy(), low.unsqueeze(dim).numpy(), out=comparison)
            inside = np.flatnonzero(comparison)
            if high is not None and len(inside):
                query = inside // S.shape[1] if dim == 1 else inside % S.shape[1]
                inside = inside[flat[inside] <= high.numpy()[query]]
            if len(inside) * _SHARE > limit:
                return None
            indices.append(inside)
        every = np.unique(np.concatenate(indices)) if indices else np.zeros(0, np.int64)
        return None if len(every) * _SHARE > limit else torch.from_numpy(every)


def require_comparisons(objectives: Sequence[Objective]) -> None:
    """Raise InputError for an objective that needs the exact value of every entry."""
    for objective in objectives:
        if objective.counting_rule is not None and not objective.counting_rule.compares:
            raise InputError(
                "--precision bf16 must be used with objectives that only compare similarities; got "
                f"{type(objective).__name__}, which adds up exponentials of every similarity; use --precision float32"
            )


def _largest_error(own: RoundedVectors, other: RoundedVectors, d: int) -> Tensor:
    """(r,) error of each of `own` with any of `other`; the last terms cover underflow and rounding of exact entries."""
    sums = 2.0**-23 * (d + 8) * own.rounded_norm * other.rounded_norm.amax()
    lost = (
        own.error_norm * other.norm.amax()
        + own.rounded_norm * other.error_norm.amax()
        + 2.0**-22 * own.norm * other.norm.amax()
    )
    return (lost + sums) * (1 + 2.0**-12) + 2.0**-100
