"""Run the probes on a random sample of the queries of a single batch, each against all candidates."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from lossscope.core.batches import Batch
from lossscope.core.types import LEVEL, Direction, Rows
from lossscope.errors import InputError

from ..batch_runner import BatchRunner, BatchStatistics, rows_of_batches
from ..blocks.matrix import TiledMatrix
from ..blocks.shards import ShardStrips
from ..blocks.sparse_mask import SparseMask
from ..blocks.strips import MatrixStrips
from ..fold import Blocks, Execution, fold, folds_of
from ..large_batches import LargeBatchRunner, batch_shapes
from ..run_probes import ProbePlan, ProbeResult, merge_parts
from .checkpoint import StripsFile
from .draw import draw_queries
from .estimates import estimates
from .precision import PILOT, Precision


@dataclass(frozen=True)
class SampleRunner:
    """Run the probes of a sweep on a sample of the queries of each direction."""

    runner: BatchRunner  # plan, probes and source
    file: StripsFile  # keeps the sums of finished strips
    key: str  # of the part of the frame

    def run(self, batch: Batch) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return rows of the batch, with intervals, and rows of single queries; every process has all rows."""
        options = self.runner.plan.options
        precision = None if options.precision_of is None else Precision.parse(options.precision_of)
        population = {direction: len(rows) for direction, rows in _queries(batch).items()}
        target = PILOT if options.queries is None else options.queries
        done, results = 0, dict[Direction, list[ProbeResult]]()
        while done < target:
            for direction, N in population.items():
                if done < N:
                    more = self._results(batch, direction, done, min(target, N))
                    before = results.get(direction)
                    results[direction] = (
                        [merge_parts(pair) for pair in zip(before, more, strict=True)] if before else more
                    )
            done = min(target, max(population.values()))
            target = 0 if precision is None else self._queries_needed(results, population, precision)
        sampled = {direction: min(done, N) for direction, N in population.items()}
        return self._rows(batch, results, population, sampled)

    @property
    def _level(self) -> float:
        stated = self.runner.plan.options.interval
        return LEVEL if stated is None else stated

    def _results(self, batch: Batch, direction: Direction, start: int, stop: int) -> list[ProbeResult]:
        """Run the probes on queries `start`..`stop`-1 of the random order of a direction."""
        runner = self.runner
        sample = draw_queries(len(_queries(batch)[direction]), start, stop, runner.plan.options.seed, direction)
        plan = runner.probe_plan.of_direction(direction)
        by_tiles, by_panels = plan.split()
        label = f"{self.key} {direction} {start}-{stop}"
        results = self._run_tiles(by_tiles, batch, direction, sample, label) if by_tiles.pairs else []
        results += self._run_panels(by_panels, batch, direction, sample) if by_panels.pairs else []
        return sorted(results, key=lambda result: plan.pairs.index((result.objective, result.probe)))

    def _run_tiles(
        self, plan: ProbePlan, batch: Batch, direction: Direction, sample: Rows, label: str
    ) -> list[ProbeResult]:
        runner = self.runner

        def on_strip(done: int, of: int) -> None:
            if runner.progress:
                runner.progress(
                    f"{runner.label_of(direction)}: strips of candidates of {len(sample)} queries", done, of
                )

        blocks = self._strips(batch, direction, sample)
        mask = SparseMask.of(batch, runner.embedded.relations, runner.plan.options.same_image, sample, direction)
        of_tiles = mask if direction == "i2t" else mask.t()
        shapes = batch_shapes(_with_sample(batch, direction, sample))
        (rows,) = fold(
            blocks, of_tiles, [shapes.i2t if direction == "i2t" else shapes.t2i],
            lambda _, positives: folds_of(plan, positives),
            Execution(runner.processes, self.file.of(label), on_strip, runner.workers),
        )  # fmt: skip
        return plan.run(rows)

    def _run_panels(self, plan: ProbePlan, batch: Batch, direction: Direction, sample: Rows) -> list[ProbeResult]:
        """Run probes that need whole rows, a few queries at a time."""
        runner = self.runner
        options = runner.plan.options

        def on_step(done: int, of: int) -> None:
            if runner.progress:
                runner.progress(f"{runner.label_of(direction)}: rows of {len(sample)} queries", done, of)

        mask = SparseMask.of(batch, runner.embedded.relations, options.same_image, sample, direction)
        large = LargeBatchRunner(plan, options.same_image, runner.processes, on_step, runner.workers)
        transposed = direction == "t2i"
        shapes = batch_shapes(_with_sample(batch, direction, sample))
        tile_mask = mask.t() if transposed else mask
        return large.run_panels(plan, self._matrix(batch, direction, sample), tile_mask, shapes, transposed)

    def _strips(self, batch: Batch, direction: Direction, sample: Rows) -> Blocks:
        shards = self.runner.embedded.shards
        if shards is not None and batch.mode != "views":
            drawn = _with_sample(batch, direction, sample)
            if direction == "i2t":
                return ShardStrips(shards.i2t.take(drawn.images), shards.t2i, batch.captions, False)
            return ShardStrips(shards.t2i.take(drawn.captions), shards.i2t, batch.images, True)
        return MatrixStrips.of(self._matrix(batch, direction, sample), direction)

    def _matrix(self, batch: Batch, direction: Direction, sample: Rows) -> TiledMatrix:
        """Return S of the sampled queries, with the first side as rows."""
        embedded = self.runner.embedded.in_memory
        if embedded.pair_scorer is not None:
            raise InputError(
                f"--queries needs embeddings or similarities; {embedded.name} scores pairs with a model. Leave it out"
            )
        drawn = _with_sample(batch, direction, sample)
        return TiledMatrix(embedded.joined if batch.mode == "views" else embedded, drawn.images, drawn.captions)

    def _rows(
        self,
        batch: Batch,
        results: dict[Direction, list[ProbeResult]],
        population: dict[Direction, int],
        sampled: dict[Direction, int],
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return wide rows, with the columns `C_q low` and `C_q high` of every statistic, and rows of queries."""
        runner, items = self.runner, len(batch.images)
        size = runner.plan.batch_size_of(runner.batching) or items
        label = f"{runner.plan.sampling_label(runner.batching)}, {self._sample_text(population, sampled)}"
        rows, ends, queries = [], [], []
        for direction, of_direction in results.items():
            N = population[direction]
            for result in of_direction:
                values, intervals = estimates(result, N, self._level)
                keys = {**runner.key_of(result.probe, result.objective, result.direction), "sampling": label}
                key = {**keys, "queries": N, "items": items, "batch_size": size, "sampled": sampled[direction]}
                named = {runner.plan.name_of(name): value for name, value in values.items()}
                rows.append(BatchStatistics(key, 0, 1, named))
                ends.append({
                    f"{runner.plan.name_of(name)} {end}": value
                    for name, interval in intervals.items()
                    for end, value in interval._asdict().items()
                })  # fmt: skip
                if runner.plan.options.per_query:
                    queries.append(runner.query_rows(result, 0).assign(sampling=label))
        wide = pd.concat([rows_of_batches(rows), pd.DataFrame(ends)], axis=1)
        return wide, pd.concat(queries) if queries else pd.DataFrame()

    def _sample_text(self, population: dict[Direction, int], sampled: dict[Direction, int]) -> str:
        """`2000 of 50000 queries, all candidates`."""
        texts = {direction: f"{sampled[direction]} of {N}" for direction, N in population.items()}
        if len(set(texts.values())) == 1:
            return f"{next(iter(texts.values()))} queries, all candidates"
        each = (f"{text} ({self.runner.label_of(direction)})" for direction, text in texts.items())
        return f"{' and '.join(each)} queries, all candidates"

    def _queries_needed(
        self, results: dict[Direction, list[ProbeResult]], population: dict[Direction, int], precision: Precision
    ) -> int:
        needed: list[int] = []
        for direction, of_direction in results.items():
            N = population[direction]
            for result in of_direction:
                values, intervals = estimates(result, N, self._level)
                for name, interval in intervals.items():
                    if self.runner.plan.name_of(name) == precision.statistic:
                        n = len(result.shape.query_ids)
                        needed.append(precision.queries_needed(float(values[name][0]), interval, n, N))
        if not needed:
            raise InputError(
                f"--precision-of must name a statistic of this sweep; got {precision.statistic}, and there are "
                f"{', '.join(self.runner.plan.units)}"
            )
        return max(needed)


def _queries(batch: Batch) -> dict[Direction, Rows]:
    """Return the queries of each direction of a batch; one set has one direction."""
    return {direction: batch.images if direction == "i2t" else batch.captions for direction in batch.directions}


def _with_sample(batch: Batch, direction: Direction, sample: Rows) -> Batch:
    """Return the batch with the sampled queries alone, and all candidates."""
    if direction == "i2t":
        return Batch(batch.images[sample], batch.captions, batch.mode)
    return Batch(batch.images, batch.captions[sample], batch.mode)
