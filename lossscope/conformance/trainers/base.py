"""What a trainer is: a step from embeddings to the scalar that is sent backwards, and how it may be split."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Protocol

from torch import Tensor

Step = Callable[..., Tensor | None]
"""`step(queries, candidates[, negatives])`: (b, d), (b, d) and (b, k, d) leaves -> the scalar, or None if it has called
backward itself. Where it is a module, its parameters are compared as well."""


class Trainer(Protocol):
    """A frozen dataclass whose fields are its options.

    A step is called inside a process group, with the share of one process: candidate i is the positive of query i, the
    negatives of query i are mined for it.
    """

    @property
    def takes_negatives(self) -> bool:
        """Whether mined negatives may be given."""
        ...

    @property
    def needs_negatives(self) -> bool:
        """Whether mined negatives must be given."""
        ...

    @property
    def is_chunked(self) -> bool:
        """Whether the step can be computed in chunks, as cached losses are."""
        ...

    @property
    def is_accumulated(self) -> bool:
        """Whether the step can be computed in micro-batches whose gradients are added up."""
        ...

    def require(self) -> None:
        """Raise InputError where a library is not installed, SpecError where it does not take an option."""
        ...

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return a new step.

        Args:
            chunk_size: rows of a chunk; None: the whole share at once.
            micro_batches: into which the share is cut; None: one.

        Raises:
            InputError: a library that is not installed.
        """
        ...


class LibraryTrainer(abc.ABC):
    """The loss of a library: it takes no mined negatives and is computed at once, unless it says so."""

    @property
    def takes_negatives(self) -> bool:
        """Whether mined negatives may be given."""
        return False

    @property
    def needs_negatives(self) -> bool:
        """Whether mined negatives must be given."""
        return False

    @property
    def is_chunked(self) -> bool:
        """Whether the loss is computed in chunks."""
        return False

    @property
    def is_accumulated(self) -> bool:
        """Never: trainers accumulate, losses do not."""
        return False

    def require(self) -> None:
        """Build the loss once: what it refuses, it refuses before processes are started."""
        self.build()

    @abc.abstractmethod
    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return a new step; see Trainer."""
