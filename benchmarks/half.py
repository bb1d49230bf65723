"""A pass over one large batch in bfloat16, undecided cells made again, against the same pass in float32.

Both directions, positives included. s: CPU seconds of one thread. bf16 tiles: those that bfloat16 settled. cells
again: those made exactly. differ: counts of queries, or their hardest negatives and ranks, that differ.
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

ASKED = ("triplet", "triplet-sh", "extremes")


class Case:
    """One batch of everything, and what is asked of it."""

    def __init__(self, embedded: SplitEmbeddings, asked: str) -> None:
        self.objectives = [] if asked == "extremes" else [build("objectives", asked)]
        self.batch = next(Sampling("pairs", None).batches(embedded.caption_image))
        self.matrix = TiledMatrix(embedded, self.batch.images, self.batch.captions)
        self.relation = SparseMask.of(self.batch, embedded.caption_image, "keep")

    def passed(self, precision: Literal["float32", "bf16"]) -> Pair[TiledRows]:
        images, captions = torch.from_numpy(self.batch.images), torch.from_numpy(self.batch.captions)
        shapes = Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))
        asked = TilePass(self.objectives, [0.01], not self.objectives, precision=precision)
        return asked.run(self.matrix, self.relation, shapes)

    def answers(self, precision: Literal["float32", "bf16"]) -> list[torch.Tensor]:
        """Whole numbers of every query."""
        found = self.passed(precision)
        if not self.objectives:
            return [getattr(look.extremes, name) for look in found for name in ("column", "above", "ties")]
        return [look.counts(self.objectives[0], 0.01, "corrected").above for look in found]


def told(case: Case) -> tuple[int, int]:
    """Rounded tiles that were settled, and cells made again in them."""
    settled, again = 0, 0
    places = Bfloat16Tiles._undecided_indices

    def counted(self: Bfloat16Tiles, S: torch.Tensor, undecided: Any) -> torch.Tensor | None:
        nonlocal settled, again
        found = places(self, S, undecided)
        if found is not None:
            settled, again = settled + 1, again + len(found)
        return found

    Bfloat16Tiles._undecided_indices = counted  # type: ignore[method-assign]
    try:
        case.passed("bf16")
    finally:
        Bfloat16Tiles._undecided_indices = places  # type: ignore[method-assign]
    return settled, again


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--size", type=int, default=8192)
    asked.add_argument("--widths", type=int, nargs="+", default=[512, 1024])
    asked.add_argument("--noise", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    asked.add_argument("--repeats", type=int, default=5)
    given = asked.parse_args()
    torch.set_num_threads(1)
    rows = []
    for width in given.widths:
        for noise in given.noise:
            embedded = source(given.size, 1, width, noise)
            for name in ASKED:
                case = Case(embedded, name)
                answers = zip(case.answers("float32"), case.answers("bf16"), strict=True)
                other = sum(int((a != b).sum()) for a, b in answers)
                settled, again = told(case)
                passes = (partial(case.passed, "float32"), partial(case.passed, "bf16"))
                plain, half = medians(passes, given.repeats)
                numbers = (f"{plain:.3f}", f"{half:.3f}", f"{plain / half:.2f}", str(settled), str(again), str(other))
                rows.append((name, str(width), f"{noise:g}", *numbers))
                print(*rows[-1], flush=True)
    print(f"\nB = {given.size}, medians of {given.repeats}, {machine()}\n")
    heads = ("asked", "d", "noise", "float32 s", "bf16 s", "speedup", "bf16 tiles", "cells again", "differ")
    print(table(heads, rows))


if __name__ == "__main__":
    main()
