"""Run probes on a batch too large for its matrix: in one pass over tiles if that is enough, else in panels of rows."""

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
    same_image: SameImage  # role of another caption of the same image
    processes: ProcessGroup  # processes that share the batch
    on_tile: OnStep | None = None
    workers: Workers = ALONE

    def run(self, embedded: SplitEmbeddings, batch: Batch) -> Iterator[list[ProbeResult]]:
        """Yield the results of i2t, then of t2i, in the order of the plan; every process has all of them.

        A single set has one direction.
        """
        matrix = TiledMatrix(embedded.joined if batch.mode == "views" else embedded, batch.images, batch.captions)
        mask = SparseMask.of(batch, embedded.relations, self.same_image)
        shapes = batch_shapes(batch)
        directions = list(shapes)[: len(batch.directions)]
        by_tiles, _ = self.plan.split()
        folded = self._run_tiles(by_tiles, matrix, mask, directions) if by_tiles.pairs else {}
        for transposed, shape in enumerate(directions):
            of_tiles, of_panels = self.plan.of_direction(shape.direction).split()
            results = of_tiles.run(folded[shape.direction]) if folded else []
            results += self.run_panels(of_panels, matrix, mask, shapes, bool(transposed)) if of_panels.pairs else []
            yield sorted(results, key=lambda result: self.plan.pairs.index((result.objective, result.probe)))

    def sampled_rows(
        self, embedded: SplitEmbeddings, batch: Batch, direction: Direction, queries: Rows
    ) -> Iterator[tuple[DenseRows, torch.Tensor]]:
        """Yield the rows of the given queries, a panel at a time, and the indices of the panel's queries.

        Args:
            embedded: the split.
            batch: a large batch.
            direction: of the rows.
            queries: (r,) indices of queries in the batch.
        """
        matrix = TiledMatrix(embedded.joined if batch.mode == "views" else embedded, batch.images, batch.captions)
        mask = SparseMask.of(batch, embedded.relations, self.same_image)
        shape = batch_shapes(batch).i2t if direction == "i2t" else batch_shapes(batch).t2i
        mask = mask if direction == "i2t" else mask.t()
        for part in torch.split(torch.from_numpy(queries), max(_SAMPLED // shape.candidates, 1)):
            S = matrix.whole_rows(part, direction)
            ids = shape.candidate_ids.expand(len(part), -1)
            panel = BatchShape(len(part), direction, shape.query_ids[part], ids, has_all_queries=False)
            yield DenseRows(panel, S, mask.mask(part).to(S.device)), part

    def _run_tiles(
        self, plan: ProbePlan, matrix: TiledMatrix, mask: SparseMask, shapes: Sequence[BatchShape]
    ) -> dict[Direction, FoldedRows]:
        """Run the plan in one pass over S, with smaller tiles if memory runs out."""
        height, width = tile_size(matrix.example.device)

        def run(rows: int) -> dict[Direction, FoldedRows]:
            blocks, wanted = MatrixBlocks(matrix, rows, width), lambda _, positives: folds_of(plan, positives)
            execution = Execution(self.processes, None, self.on_tile, self.workers)
            folded = fold(blocks, mask, shapes, wanted, execution)
            return {rows.shape.direction: rows for rows in folded}

        if self.processes.size > 1:  # processes exchange sums of tiles, so no process may change the size alone
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
            panels = row_slices(shape.queries, size)
            share = panels[self.processes.share(len(panels))]
            parts: list[list[ProbeResult]] = [[] for _ in plan.pairs]

            def of_panel(queries: slice, buffers: Buffers) -> list[ProbeResult]:
                return plan.run(_panel(matrix, mask, shape, queries, embeddings, keys))

            for done, results in enumerate(self.workers.run(of_panel, share)):
                parts = [append_part(before, result) for before, result in zip(parts, results, strict=True)]
                if self.on_tile:
                    self.on_tile(done + 1, len(share))
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
    """Return the queries of a panel against all candidates.

    Args:
        matrix: S in tiles.
        mask: of the direction.
        shape: of the direction, whole.
        queries: of the panel.
        embeddings: include the embeddings, if the split has them.
        keys: include the input keys and the known positives.
    """
    candidates, transposed = slice(0, shape.candidates), shape.direction == "t2i"
    S = matrix.block(candidates, queries).T.contiguous() if transposed else matrix.block(queries, candidates)
    dense_mask = mask.mask(torch.arange(queries.start, queries.stop)).to(S.device)
    q, c = (matrix.captions, matrix.images) if transposed else (matrix.images, matrix.captions)
    panel = BatchShape(1, shape.direction, shape.query_ids[queries], shape.candidate_ids, has_all_queries=False)
    rows = with_items(matrix.embedded, DenseRows(panel, S, dense_mask), keys)
    if not embeddings or q is None or c is None:
        return rows
    return replace(rows, queries=q[queries], candidates=c[None], all_queries=q[None])
