"""What a reader of a loss of sentence-transformers is, and how the losses are told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lossscope.core.sides import QUERY_DOCUMENT, Sides
from lossscope.errors import InputError

from ..observed import Observed
from ..recording import Call

LIBRARY = "sentence_transformers"


@dataclass(frozen=True)
class LossCall:
    """One call of a loss, of one dimension of a Matryoshka loss."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    value: Tensor  # () with its graph, or without, of a loss that was backpropagated at once
    calls: Sequence[Call]  # of its similarity
    is_cached: bool = False  # whether it was called with embeddings in chunks, and was backpropagated at once
    sides: Sides = QUERY_DOCUMENT  # names of both sides
    is_objective: bool = True  # whether W is that of the loss itself; else the rows are for another objective

    @property
    def features(self) -> Sequence[Any]:
        """The columns that the loss was called with: loss(sentence_features, labels), or embeddings in chunks."""
        given = self.args[0] if self.args else self.kwargs.get("sentence_features", self.kwargs.get("reps"))
        if given is None:
            raise InputError(
                "a loss of sentence-transformers must be called with sentence_features; "
                f"got {', '.join(self.kwargs) or 'nothing'}"
            )
        return list(given)

    @property
    def pairs(self) -> int | None:
        """Number of rows of the batch, where it is computed in chunks."""
        return sum(len(chunk) for chunk in self.features[0]) if self.is_cached else None

    @property
    def labels(self) -> Tensor | None:
        """The labels that the loss was called with: loss(sentence_features, labels)."""
        labels = self.args[1] if len(self.args) > 1 else self.kwargs.get("labels")
        return labels if isinstance(labels, Tensor) else None


@dataclass(frozen=True)
class LossReader:
    """How a loss is read: calls of its similarity are recorded while it runs, and say what it saw."""

    owner: Any  # the object that has the attribute whose calls are recorded
    observed: Callable[[LossCall], Observed]  # what the loss saw in a call
    attribute: str = "similarity_fct"  # of the owner: the similarity of the loss
    reads_argument: bool = False  # whether similarities are what the attribute is called with; else its result
    keeps_gradients: bool = False  # whether they are kept of similarities where the loss is backpropagated at once
    similarities: int = 1  # that are computed for each chunk of a batch


def class_names(loss: Any) -> set[str]:
    """Return the names of the classes of sentence-transformers that a loss is an instance of."""
    return {cls.__name__ for cls in type(loss).__mro__ if cls.__module__.partition(".")[0] == LIBRARY}
