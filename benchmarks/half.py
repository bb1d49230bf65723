"""How much faster is a pass over one large batch in bfloat16, undecided entries computed again, than one in float32?

Both directions, positives included. s: CPU seconds of one thread. bf16 tiles: those whose bfloat16 product was kept.
entries again: entries of S in them that were computed again in full precision. differ: how many counts of queries, or
hardest negatives and ranks, are not those of the float32 pass.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, Literal

import torch
from measuring import machine, medians, source, table

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.engine.tiled.bfloat16 import Bfloat16Tiles
from lossscope.engine.tiled.matrix import TiledMatrix
from lossscope.engine.tiled.one_pass import TiledRows, TilePass
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.probes.views.view import BatchShape
from lossscope.registry import build

# what a pass computes: counts of an objective, or hardest negatives and ranks (extremes)
PASSES = ("triplet", "triplet-sh", "extremes")


class Case:
    """One batch of all pairs, and a pass over it."""

    def __init__(self, embedded: SplitEmbeddings, name: str) -> None:
        self.objectives = [] if name == "extremes" else [build("objectives", name)]
        self.batch = next(Sampling("pairs", None).batches(embedded.relations))
        self.matrix = TiledMatrix(embedded, self.batch.images, self.batch.captions)
        self.mask = SparseMask.of(self.batch, embedded.relations.caption_image, "keep")

    def run(self, precision: Literal["float32", "bf16"]) -> Pair[TiledRows]:
        """Return the rows of S in both directions, after a pass over all tiles."""
        images, captions = torch.from_numpy(self.batch.images), torch.from_numpy(self.batch.captions)
        shapes = Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))
        tile_pass = TilePass(self.objectives, [0.01], not self.objectives, precision=precision)
        return tile_pass.run(self.matrix, self.mask, shapes)

    def whole_numbers(self, precision: Literal["float32", "bf16"]) -> list[torch.Tensor]:
        """Return the counts of every query, or its hardest negative, its rank and its ties, in both directions."""
        directions = self.run(precision)
        if not self.objectives:
            return [getattr(rows.extremes, name) for rows in directions for name in ("column", "above", "ties")]
        return [rows.counts(self.objectives[0], 0.01, "corrected").above for rows in directions]


def count_recomputed(case: Case) -> tuple[int, int]:
    """Return how many tiles stayed in bfloat16, and how many entries of them were computed again."""
    tiles, entries = 0, 0
    original = Bfloat16Tiles._undecided_indices

    def counting(self: Bfloat16Tiles, S: torch.Tensor, undecided: Any) -> torch.Tensor | None:
        nonlocal tiles, entries
        indices = original(self, S, undecided)
        if indices is not None:
            tiles, entries = tiles + 1, entries + len(indices)
        return indices

    Bfloat16Tiles._undecided_indices = counting  # type: ignore[method-assign]
    try:
        case.run("bf16")
    finally:
        Bfloat16Tiles._undecided_indices = original  # type: ignore[method-assign]
    return tiles, entries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--widths", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--noise", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    table_rows = []
    for width in options.widths:
        for noise in options.noise:
            embedded = source(options.size, 1, width, noise)
            for name in PASSES:
                case = Case(embedded, name)
                pairs = zip(case.whole_numbers("float32"), case.whole_numbers("bf16"), strict=True)
                differ = sum(int((exact != rounded).sum()) for exact, rounded in pairs)
                tiles, entries = count_recomputed(case)
                float32, bf16 = medians((partial(case.run, "float32"), partial(case.run, "bf16")), options.repeats)
                times = (f"{float32:.3f}", f"{bf16:.3f}", f"{float32 / bf16:.2f}")
                table_rows.append((name, str(width), f"{noise:g}", *times, str(tiles), str(entries), str(differ)))
                print(*table_rows[-1], flush=True)
    print(f"\nB = {options.size}, medians of {options.repeats}, {machine()}\n")
    heads = ("objective", "d", "noise", "float32 s", "bf16 s", "speedup", "bf16 tiles", "entries again", "differ")
    print(table(heads, table_rows))


if __name__ == "__main__":
    main()
