"""Parts of the one batch that a sample of queries is drawn from."""

from __future__ import annotations

from lossscope.core.batches import Batch
from lossscope.core.types import Direction, Rows
from lossscope.probes.views.view import BatchShape

from ..large_batches import batch_shapes
from ..run_probes import ProbeResult, merge_parts


def queries_of(batch: Batch) -> dict[Direction, Rows]:
    """Return the queries of each direction of a batch; one set has one direction."""
    return {"i2t": batch.images} if batch.is_one_set else {"i2t": batch.images, "t2i": batch.captions}


def with_sample(batch: Batch, direction: Direction, sample: Rows) -> Batch:
    """Return the batch with the sampled queries alone, and all candidates."""
    if direction == "i2t":
        return Batch(batch.images[sample], batch.captions, batch.mode)
    return Batch(batch.images, batch.captions[sample], batch.mode)


def shape_of(batch: Batch, direction: Direction, sample: Rows) -> BatchShape:
    """Return the shape of the sampled queries of a direction and all candidates."""
    shapes = batch_shapes(with_sample(batch, direction, sample))
    return shapes.i2t if direction == "i2t" else shapes.t2i


def with_more(before: list[ProbeResult], more: list[ProbeResult]) -> list[ProbeResult]:
    """Return the results of further queries behind those of the first ones."""
    if not before:
        return more
    return [merge_parts(pair) for pair in zip(before, more, strict=True)]
