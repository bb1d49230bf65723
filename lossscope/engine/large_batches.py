"""Run probes on a batch too large for its matrix: in one pass over tiles where that is enough, else in row panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from lossscope.core import memory
from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.types import Direction, OnStep, Rows, SameImage
from lossscope.objectives.counting.block import Buffers
from lossscope.probes.views.view import BatchShape, DenseRows

from .blocks.matrix import MatrixBlocks, TiledMatrix, row_slices, tile_size
from .blocks.sparse_mask import SparseMask
from .fold import Execution, FoldedRows, fold, folds_of
from .row_items import with_items
from .run_probes import ProbePlan, ProbeResult, append_part, merge_parts
from .workers import ALONE, Workers

PANEL = 1 << 21  # entries of S of a panel
_SAMPLED = 1 << 20  # entries of S of a panel of sampled rows
COPIES = 12  # matrices of the size of S that an objective and the probes may allocate


@dataclass(frozen=True)
class LargeBatchRunner:
    """Run the probes of a plan on one large batch."""

    plan: ProbePlan
    same_image: SameImage  # what another caption of the same image is
    processes: ProcessGroup  # those that share the batch
    on_tile: OnStep | None = None
    workers: Workers = ALONE

    def run(self, embedded: SplitEmbeddings, batch: Batch) -> Iterator[list[ProbeResult]]:
        """Yield the results of i2t, then of t2i, in the order of the plan; every process has all of them.

        Of one set there is one direction.
        """
        matrix = TiledMatrix(embedded.joined if batch.mode == "views" else embedded, batch.images, batch.captions)
        mask = SparseMask.of(batch, embedded.relations, self.same_image)
        shapes = batch_shapes(batch)
        directions = [shapes.i2t] if batch.is_one_set else list(shapes)
        by_tiles, _ = self.plan.split()
        folded = self._run_tiles(by_tiles, matrix, mask, directions) if by_tiles.pairs else {}
        for transposed, shape in enumerate(directions):
            of_tiles, of_panels = self.plan.of_direction(shape.direction).split()
            results = of_tiles.run(folded[shape.direction]) if folded else []
            results += self.run_panels(of_panels, matrix, mask, shapes, bool(transposed)) if of_panels.pairs else []
            yield sorted(results, key=lambda result: self.plan.pairs.index((result.objective, result.probe)))

    def sampled_rows(
        self, embedded: SplitEmbeddings, batch: Batch, direction: Direction, places: Rows
    ) -> Iterator[tuple[DenseRows, torch.Tensor]]:
        """Yield some rows of S, a panel at a time, and the places of its queries.

        Args:
            embedded: the split.
            batch: a large one.
            direction: of the rows.
            places: (r,) of queries in the batch.
        """
        matrix = TiledMatrix(embedded.joined if batch.mode == "views" else embedded, batch.images, batch.captions)
        mask = SparseMask.of(batch, embedded.relations, self.same_image)
        shape = batch_shapes(batch).i2t if direction == "i2t" else batch_shapes(batch).t2i
        mask = mask if direction == "i2t" else mask.t()
        for part in torch.split(torch.from_numpy(places), max(_SAMPLED // shape.candidates, 1)):
            S = matrix.whole_rows(part, direction)
            ids = shape.candidate_ids.expand(len(part), -1)
            own = BatchShape(len(part), direction, shape.query_ids[part], ids, has_all_queries=False)
            yield DenseRows(own, S, mask.mask(part).to(S.device)), part

    def _run_tiles(
        self, plan: ProbePlan, matrix: TiledMatrix, mask: SparseMask, shapes: Sequence[BatchShape]
    ) -> dict[Direction, FoldedRows]:
        """Compute what the plan needs in one pass over S, with smaller tiles if memory runs out."""
        height, width = tile_size(matrix.example.device)

        def run(rows: int) -> dict[Direction, FoldedRows]:
            blocks, wanted = MatrixBlocks(matrix, rows, width), lambda _, positives: folds_of(plan, positives)
            execution = Execution(self.processes, None, self.on_tile, self.workers)
            folded = fold(blocks, mask, shapes, wanted, execution)
            return {rows.shape.direction: rows for rows in folded}

        if self.processes.size > 1:  # the processes exchange sums of their tiles, so none may change their size alone
            return run(height)
        return memory.retry_smaller(run, height, 16)

    def run_panels(
        self, plan: ProbePlan, matrix: TiledMatrix, mask: SparseMask, shapes: Pair[BatchShape], transposed: bool
    ) -> list[ProbeResult]:
        """Run the probes on one direction in panels of whole rows."""
        mask = mask.t() if transposed else mask
        shape = shapes.t2i if transposed else shapes.i2t
        embeddings, keys = "embeddings" in plan.reads, "keys" in plan.reads
        example = matrix.example
        fitting = memory.free_bytes(example.device) // (4 * example.element_size() * COPIES * self.workers.jobs)
        size = max(min(memory.entries_at_a_time(PANEL, example.device), fitting) // shape.candidates, 1)

        def run(size: int) -> list[list[ProbeResult]]:
            every = row_slices(shape.queries, size)
            own = every[self.processes.share(len(every))]
            parts: list[list[ProbeResult]] = [[] for _ in plan.pairs]

            def of_panel(queries: slice, buffers: Buffers) -> list[ProbeResult]:
                return plan.run(_panel(matrix, mask, shape, queries, embeddings, keys))

            for done, results in enumerate(self.workers.run(of_panel, own)):
                parts = [append_part(before, one) for before, one in zip(parts, results, strict=True)]
                if self.on_tile:
                    self.on_tile(done + 1, len(own))
            return parts

        of_all = self.processes.gather(memory.retry_smaller(run, size, 1))
        return [
            merge_parts([part for parts in of_probe for part in parts], shape)
            for of_probe in zip(*of_all, strict=True)
        ]  # fmt: skip


def batch_shapes(batch: Batch) -> Pair[BatchShape]:
    """Return the shapes of both directions."""
    images, captions = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    return Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))


def _panel(
    matrix: TiledMatrix, mask: SparseMask, shape: BatchShape, queries: slice, embeddings: bool, keys: bool
) -> DenseRows:
    """Return some queries against all candidates.

    Args:
        matrix: S in tiles.
        mask: of the direction.
        shape: of the direction, whole.
        queries: those of the panel.
        embeddings: include the embeddings, if the split has them.
        keys: include the input keys and the known positives.
    """
    every, transposed = slice(0, shape.candidates), shape.direction == "t2i"
    S = matrix.block(every, queries).T.contiguous() if transposed else matrix.block(queries, every)
    dense_mask = mask.mask(torch.arange(queries.start, queries.stop)).to(S.device)
    q, c = (matrix.captions, matrix.images) if transposed else (matrix.images, matrix.captions)
    panel = BatchShape(1, shape.direction, shape.query_ids[queries], shape.candidate_ids, has_all_queries=False)
    rows = with_items(matrix.embedded, DenseRows(panel, S, dense_mask), keys)
    if not embeddings or q is None or c is None:
        return rows
    return replace(rows, queries=q[queries], candidates=c[None], all_queries=q[None])
