"""A loss of embeddings under GradCache: representations in chunks, their gradients kept, chunks once more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lossscope.registry import build

from ..library_options import construct, load_class
from .base import LibraryTrainer, Step, Trainer


def _cache_class() -> Any:
    return load_class("grad_cache", "GradCache", "GradCache", "git+https://github.com/luyug/GradCache")


@dataclass(frozen=True)
class GradCache(LibraryTrainer):
    """The class GradCache of the library of that name, whose two models return the embeddings that they are given.

    Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup", and its code.
    """

    loss: str  # spec of a trainer, as ./file.py:loss, called as loss(queries, candidates)

    @property
    def is_chunked(self) -> bool:
        """Always."""
        return True

    def require(self) -> None:
        """Look for the library before processes are started."""
        _cache_class()

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return the loss itself where `chunk_size` is None, so that chunks are compared with it; see Trainer.

        Raises:
            InputError: GradCache is not installed.
            SpecError: the loss cannot be built.
        """
        trainer: Trainer = build("trainers", self.loss)
        loss = trainer.build()
        if chunk_size is None:
            return loss
        models = [nn.Identity(), nn.Identity()]
        given = {"models": models, "chunk_sizes": chunk_size, "loss_fn": loss}
        cache = construct(_cache_class(), given, {})

        def step(queries: Tensor, candidates: Tensor) -> None:
            cache(queries, candidates)

        return step
