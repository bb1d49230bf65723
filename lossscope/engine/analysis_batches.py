"""Which batches does an analysis of losses read? Full batches that every loss takes, the same for all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from lossscope.core.batches import Batch, Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import Mask
from lossscope.core.types import MinedNegatives, SamplingMode
from lossscope.probes.views.view import DenseRows

from .analysis_options import AnalysisBatches
from .small_batches import rows_of_stack

_PER_CLASS = 2  # items of a class: losses of one positive take no more


def draw_batches(embedded: SplitEmbeddings, options: AnalysisBatches | None = None) -> list[Batch]:
    """Return full batches of pairs; of classes for one labelled set, of proxies against class vectors.

    A last batch that is not full is left out, as each batch has the same say in a mean over batches; where no batch is
    full, everything is one batch.

    Args:
        embedded: the split.
        options: batch size, seed, and how many batches; None: the defaults.

    Raises:
        InputError: a batch size that the source cannot have.
    """
    options, relations = options or AnalysisBatches(), embedded.relations
    mode: SamplingMode = "classes" if relations.one_set else "proxies" if relations.sides.has_proxies else "pairs"
    negatives: MinedNegatives = "none" if mode == "proxies" else "batch"
    sampling = Sampling(
        mode, options.batch_size, options.seed, drop_last=True, negatives=negatives, per_class=_PER_CLASS
    )  # fmt: skip
    if not sampling.count(relations):
        sampling = replace(sampling, drop_last=False)
    return list(islice(sampling.batches(relations), options.batches))


def rows_of_batch(embedded: SplitEmbeddings, batch: Batch, gradients: bool = False) -> tuple[DenseRows, ...]:
    """Return the rows of S of both directions of a batch in float64, with embeddings where there are any.

    In float32 a query that is nearly solved has weights of rounding errors, whose directions say nothing.

    Args:
        embedded: the split.
        batch: of it. Another positive of a query's item is a negative, as in published loaders.
        gradients: include the gradients of layers, if the source has a model.
    """
    rows = rows_of_stack(embedded, [batch], "keep", embeddings=embedded.images is not None, gradients=gradients)
    return tuple(replace(part, S=part.S.double(), mask=_widened(part.mask)) for part in rows)


def _widened(mask: Mask) -> Mask:
    """Return the mask with its embeddings in float64, as objectives that need them read them beside S."""
    if not mask.info:
        return mask
    info = {name: value.double() if value.is_floating_point() else value for name, value in mask.info.items()}
    return replace(mask, info=info)
