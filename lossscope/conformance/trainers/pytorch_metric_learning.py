"""Losses of pytorch-metric-learning in its DistributedLossWrapper, on two sides or on one labelled set."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.distributed import process_group

from ..library_options import construct, keyword_arguments, load_class
from .base import LibraryTrainer, Step

_LIBRARY, _MODULE = "pytorch-metric-learning", "pytorch_metric_learning.losses"


@dataclass(frozen=True)
class PytorchMetricLearning(LibraryTrainer):
    """A loss whose labels say which candidate is the positive of a query: the number of the pair in the whole batch.

    Source: pytorch-metric-learning 2.9.
    """

    loss: str = "NTXentLoss"  # its class
    wrapped: bool = True  # in a DistributedLossWrapper
    efficient: bool = False  # an option of the wrapper
    one_set: bool = False  # queries and candidates as one set of embeddings; else candidates are ref_emb
    options: str = ""  # further arguments of the loss, as in "temperature=0.1"

    def __post_init__(self) -> None:
        keyword_arguments(self.options)

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return the loss as a step; see Trainer.

        Raises:
            InputError: pytorch-metric-learning is not installed.
            SpecError: the loss does not take an option.
        """
        given = keyword_arguments(self.options)
        loss = construct(load_class(_MODULE, self.loss, _LIBRARY), given, {})
        if self.wrapped:
            wrapper = load_class("pytorch_metric_learning.utils.distributed", "DistributedLossWrapper", _LIBRARY)
            loss = construct(wrapper, {"loss": loss, "efficient": self.efficient}, {})

        def step(queries: Tensor, candidates: Tensor) -> Tensor:
            labels = torch.arange(len(queries), device=queries.device) + process_group().rank * len(queries)
            if self.one_set:
                value: Tensor = loss(torch.cat([queries, candidates]), torch.cat([labels, labels]))
            else:
                value = loss(
                    queries, labels, ref_emb=candidates, ref_labels=labels.clone()
                )  # equal objects would be one set
            return value

        return step
