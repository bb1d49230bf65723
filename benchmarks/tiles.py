"""How much longer do counts and weight mass of one large batch take than the bare product of the same panels?

Both directions. bare: S in panels of 512 rows, nothing else. ours: the whole pass, products of the positives included.
MB: peak above the embeddings.
"""

from __future__ import annotations

import argparse
import sys

import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import SamplingMode
from lossscope.engine.blocks.matrix import MatrixBlocks, TiledMatrix, row_slices, tile_size
from lossscope.engine.blocks.sparse_mask import SparseMask
from lossscope.engine.fold import Execution, fold, folds_of
from lossscope.engine.large_batches import batch_shapes
from lossscope.engine.run_probes import ProbePlan
from lossscope.engine.workers import Workers
from lossscope.registry import build

ONE_POSITIVE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "triplet", "triplet-sh")


class Case:
    """One batch of the whole split, and an objective that counts in it."""

    def __init__(self, embedded: SplitEmbeddings, spec: str, jobs: int = 1) -> None:
        self.jobs, self.objective = jobs, build("objectives", spec)
        mode: SamplingMode = "images" if self.objective.traits.positives == "many" else "pairs"
        self.batch = next(Sampling(mode, None).batches(embedded.relations))
        self.matrix = TiledMatrix(embedded, self.batch.images, self.batch.captions)
        self.mask = SparseMask.of(self.batch, embedded.relations.caption_image, "keep")
        n, m = self.matrix.shape
        assert self.matrix.images is not None
        self.buffer = torch.empty(min(512, n), m, device=self.matrix.images.device)

    def bare(self) -> None:
        """Compute S and nothing else."""
        assert self.matrix.images is not None and self.matrix.captions is not None
        for rows in row_slices(self.matrix.shape[0], 512):
            torch.mm(self.matrix.images[rows], self.matrix.captions.T, out=self.buffer[: rows.stop - rows.start])

    def counts(self) -> list[torch.Tensor]:
        """Return the counts above 0.01 of both directions; all masses are computed with them."""
        plan = ProbePlan.of([self.objective], [build("probes", "cocos:eps=0.01")])
        blocks = MatrixBlocks(self.matrix, *tile_size(self.matrix.example.device))
        folded = fold(
            blocks,
            self.mask,
            list(batch_shapes(self.batch)),
            lambda _, of: folds_of(plan, of),
            Execution(workers=Workers(self.jobs)),
        )
        return [rows.counts(self.objective, 0.01, "corrected").above for rows in folded]

    def ours(self) -> float:
        """Return the mean count."""
        i2t, t2i = self.counts()
        return float(i2t.mean() + t2i.mean()) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--objectives", nargs="+", help="specs; default: one of each form")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--noise", type=float, default=2.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="threads of ours")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table_rows = []
    for size in options.sizes:
        one_caption = source(size, 1, options.width, options.noise, options.device)
        five_captions = source(size // 5, 5, options.width, options.noise, options.device)
        for spec in (*ONE_POSITIVE, "smoothap") if options.objectives is None else options.objectives:
            case = Case(five_captions if spec == "smoothap" else one_caption, spec, options.jobs)
            count = case.ours()
            bare, ours = medians((case.bare, case.ours), options.repeats, options.device)
            shape = " x ".join(map(str, case.matrix.shape))
            megabytes = peak(case.ours, options.device)
            numbers = (f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}", f"{megabytes:.0f}", f"{count:.1f}")
            table_rows.append((spec, shape, *numbers))
            print(*table_rows[-1], file=sys.stderr, flush=True)
    print(f"\nd = {options.width}, medians of {options.repeats}, {options.jobs} jobs, {machine(options.device)}\n")
    print(table(("objective", "S", "bare s", "ours s", "ratio", "MB", "mean count"), table_rows))


if __name__ == "__main__":
    main()
