"""A batch too large for a matrix of its own: one pass over tiles where that tells enough, panels of rows where not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch

from lossscope.core import memory
from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.similarity import SameImage
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.probes.views.view import BatchShape, DenseRows

from .run_probes import ProbePlan, ProbeResult, fold_part, merge_parts, run_probes
from .tiled.matrix import ROWS, TiledMatrix, row_slices
from .tiled.one_pass import TiledRows, TilePass
from .tiled.sparse_mask import SparseMask

Tick = Callable[[int, int], None]
CELLS = 1 << 22  # similarities from which on a batch is large
PANEL = 1 << 21  # similarities of a panel
COPIES = 12  # matrices of the size of S that an objective and the probes may make of it
_ONE_LOOK = frozenset({"counts", "extremes"})


@dataclass(frozen=True)
class LargeBatchRunner:
    """What is asked of a large batch. world: the processes that share it. tick: told (done, of) in tiles.
    precision: of the tiles; panels are always float32."""

    questions: ProbePlan
    same_image: SameImage
    processes: ProcessGroup
    tick: Tick | None = None
    precision: Literal["float32", "bf16"] = "float32"

    def measured(self, embedded: SplitEmbeddings, batch: Batch) -> Iterator[list[ProbeResult]]:
        """Answers of i2t, then of t2i, in the order of the questions; every process has them all."""
        matrix = TiledMatrix(embedded, batch.images, batch.captions)
        relation = SparseMask.of(batch, embedded.caption_image, self.same_image)
        shapes = _shapes(batch)
        quick = [question for question in self.questions if needs_one_pass(*question)]
        slow = [question for question in self.questions if not needs_one_pass(*question)]
        passed = self._passed(quick, matrix, relation, shapes) if quick else None
        for turned in (False, True):
            found = list(run_probes(passed.t2i if turned else passed.i2t, quick)) if passed else []
            found += self._panels(slow, matrix, relation, shapes, turned) if slow else []
            yield sorted(found, key=lambda one: self.questions.index((one.objective, one.probe)))

    def _passed(
        self, quick: ProbePlan, matrix: TiledMatrix, relation: SparseMask, shapes: Pair[BatchShape]
    ) -> Pair[TiledRows]:
        """One pass over S for all of them, with smaller tiles where memory does not suffice."""
        objectives = list(dict.fromkeys(objective for objective, _ in quick if objective is not None))
        eps = [e for _, probe in quick if (e := getattr(probe, "eps", None)) is not None]
        extremes = any("extremes" in probe.reads for _, probe in quick)

        def run(rows: int) -> Pair[TiledRows]:
            processes, tick, precision = self.processes, self.tick, self.precision
            asking = TilePass(objectives, eps, extremes, rows=rows, processes=processes, tick=tick, precision=precision)
            return asking.run(matrix, relation, shapes)

        if self.processes.size > 1:  # the processes tell each other of their tiles, so none may change them alone
            return run(ROWS)
        return memory.retry_smaller(run, ROWS, 16)

    def _panels(
        self, slow: ProbePlan, matrix: TiledMatrix, relation: SparseMask, shapes: Pair[BatchShape], turned: bool
    ) -> list[ProbeResult]:
        """One direction in panels of whole rows."""
        relation = relation.t() if turned else relation
        shape = shapes.t2i if turned else shapes.i2t
        embeddings = any("embeddings" in probe.reads for _, probe in slow)
        keys = any("keys" in probe.reads for _, probe in slow)
        room = memory.free_bytes(matrix.any.device) // (4 * matrix.any.element_size() * COPIES)
        size = max(min(PANEL, room) // shape.candidates, 1)

        def run(size: int) -> list[list[ProbeResult]]:
            every = row_slices(shape.queries, size)
            mine = every[self.processes.share(len(every))]
            parts: list[list[ProbeResult]] = [[] for _ in slow]
            for done, part in enumerate(mine):
                look = _panel(matrix, relation, shape, part, turned, embeddings, keys)
                parts = [fold_part(met, one) for met, one in zip(parts, run_probes(look, slow), strict=True)]
                if self.tick:
                    self.tick(done + 1, len(mine))
            return parts

        of_all = self.processes.gather(memory.retry_smaller(run, size, 1))
        return [merge_parts([part for own in column for part in own], shape) for column in zip(*of_all, strict=True)]


def needs_one_pass(objective: Objective | None, probe: Probe) -> bool:
    """Whether a pass over tiles can answer."""
    if not probe.reads <= _ONE_LOOK:
        return False
    if objective is None:
        return True
    return objective.counting_rule is not None and getattr(probe, "convention", "corrected") == "corrected"


def needs_whole(objective: Objective | None, probe: Probe) -> bool:
    """Whether only the whole matrix can answer, as rows influence each other or the published counters mix them."""
    if "gradients" in probe.reads:
        return True
    if objective is None:
        return False
    mixed = objective.coupled or objective.square or objective.needs_embeddings
    return mixed or getattr(probe, "convention", "corrected") != "corrected"


def _shapes(batch: Batch) -> Pair[BatchShape]:
    images, captions = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    return Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))


def _panel(
    matrix: TiledMatrix,
    relation: SparseMask,
    shape: BatchShape,
    part: slice,
    turned: bool,
    embeddings: bool,
    keys: bool,
) -> DenseRows:
    """Some queries against all candidates."""
    every = slice(0, shape.candidates)
    S = matrix.panel(every, part).T.contiguous() if turned else matrix.panel(part, every)
    mask = relation.mask(torch.arange(part.start, part.stop)).to(S.device)
    sides = (matrix.captions, matrix.images) if turned else (matrix.images, matrix.captions)
    own = BatchShape(1, shape.direction, shape.query_ids[part], shape.candidate_ids, whole=False)
    look = DenseRows(own, S, mask)
    if keys:
        look = _known(look, matrix, part, turned)
    if not embeddings or sides[0] is None or sides[1] is None:
        return look
    return replace(look, queries=sides[0][part], candidates=sides[1][None], everyone=sides[0][None])


def _known(look: DenseRows, matrix: TiledMatrix, part: slice, turned: bool) -> DenseRows:
    """A panel that knows the image and the input of every item."""
    source, rows = matrix.embedded, (matrix.image_rows, matrix.caption_rows)
    groups = rows[0], source.caption_image[rows[1]]
    keys = [None if key is None else torch.from_numpy(key[own]) for key, own in zip(source.keys, rows, strict=True)]
    first, second = (1, 0) if turned else (0, 1)
    own, others = keys[first], keys[second]
    return replace(
        look,
        query_groups=torch.from_numpy(groups[first])[part],
        candidate_groups=torch.from_numpy(groups[second])[None],
        query_keys=None if own is None else own[part],
        candidate_keys=None if others is None else others[None],
    )
