"""Counts and weight mass of one large batch, both directions, against the bare product of the same panels.

bare: S in panels of 512 rows, nothing else. ours: the whole pass, the positives' own products included. MB: peak above
the embeddings.
"""

from __future__ import annotations

import argparse
import sys

import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.engine.tiled.matrix import TiledMatrix, row_slices
from lossscope.engine.tiled.one_pass import TilePass
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.probes.views.view import BatchShape
from lossscope.registry import build

SINGLE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "triplet", "triplet-sh")


class Case:
    """One batch of everything, and what is done with it."""

    def __init__(self, embedded: SplitEmbeddings, spec: str) -> None:
        self.objective = build("objectives", spec)
        many = self.objective.positives == "many"
        self.batch = next(Sampling("images" if many else "pairs", None).batches(embedded.caption_image))
        self.matrix = TiledMatrix(embedded, self.batch.images, self.batch.captions)
        self.relation = SparseMask.of(self.batch, embedded.caption_image, "keep")
        n, m = self.matrix.shape
        assert self.matrix.images is not None
        self.room = torch.empty(min(512, n), m, device=self.matrix.images.device)

    def bare(self) -> None:
        """S and nothing else."""
        assert self.matrix.images is not None and self.matrix.captions is not None
        for rows in row_slices(self.matrix.shape[0], 512):
            torch.mm(self.matrix.images[rows], self.matrix.captions.T, out=self.room[: rows.stop - rows.start])

    def ours(self) -> float:
        """Counts above 0.01 and all masses of both directions; the mean count."""
        images, captions = torch.from_numpy(self.batch.images), torch.from_numpy(self.batch.captions)
        shapes = Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))
        found = TilePass([self.objective], [0.01]).run(self.matrix, self.relation, shapes)
        i2t, t2i = (side.counts(self.objective, 0.01, "corrected") for side in found)
        return float(i2t.above.mean() + t2i.above.mean()) / 2


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--sizes", type=int, nargs="+", default=[8192, 32768])
    asked.add_argument("--objectives", nargs="+", help="specs; default: one of each form")
    asked.add_argument("--width", type=int, default=512)
    asked.add_argument("--repeats", type=int, default=5)
    asked.add_argument("--noise", type=float, default=2.0)
    asked.add_argument("--device", default="cpu")
    given = asked.parse_args()
    torch.set_num_threads(1)
    rows = []
    for size in given.sizes:
        pairs = source(size, 1, given.width, given.noise, given.device)
        images = source(size // 5, 5, given.width, given.noise, given.device)
        for spec in (*SINGLE, "smoothap") if given.objectives is None else given.objectives:
            case = Case(images if spec == "smoothap" else pairs, spec)
            count = case.ours()
            bare, ours = medians((case.bare, case.ours), given.repeats, given.device)
            shape = " x ".join(map(str, case.matrix.shape))
            megabytes = peak(case.ours, given.device)
            numbers = (f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}", f"{megabytes:.0f}", f"{count:.1f}")
            rows.append((spec, shape, *numbers))
            print(*rows[-1], file=sys.stderr, flush=True)
    print(f"\nd = {given.width}, medians of {given.repeats}, {machine(given.device)}\n")
    print(table(("objective", "S", "bare s", "ours s", "ratio", "MB", "mean count"), rows))


if __name__ == "__main__":
    main()
