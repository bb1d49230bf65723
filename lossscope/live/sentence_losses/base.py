"""Define the reader of a loss of sentence-transformers, and recognise the loss by its class."""

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
    """A call of a loss, or of one dimension of a Matryoshka loss."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    value: Tensor  # () with its graph; without it if the loss was backpropagated at once
    calls: Sequence[Call]  # of its similarity
    is_cached: bool = False  # whether the call had embeddings in chunks, backpropagated at once
    sides: Sides = QUERY_DOCUMENT  # names of both sides
    is_objective: bool = True  # whether W belongs to the loss itself; else the rows are for another objective

    @property
    def features(self) -> Sequence[Any]:
        """The columns of the call: loss(sentence_features, labels), or embeddings in chunks."""
        given = self.args[0] if self.args else self.kwargs.get("sentence_features", self.kwargs.get("reps"))
        if given is None:
            raise InputError(
                "a loss of sentence-transformers must be called with sentence_features; "
                f"got {', '.join(self.kwargs) or 'nothing'}"
            )
        return list(given)

    @property
    def pairs(self) -> int | None:
        """Number of rows of a batch that is computed in chunks."""
        return sum(len(chunk) for chunk in self.features[0]) if self.is_cached else None

    @property
    def labels(self) -> Tensor | None:
        """The labels of the call: loss(sentence_features, labels)."""
        labels = self.args[1] if len(self.args) > 1 else self.kwargs.get("labels")
        return labels if isinstance(labels, Tensor) else None


@dataclass(frozen=True)
class LossReader:
    """How to read a loss: the recorded calls of its similarity show what it saw."""

    owner: Any  # object with the recorded attribute
    observed: Callable[[LossCall], Observed]  # what the loss saw in a call
    attribute: str = "similarity_fct"  # of the owner: the similarity of the loss
    reads_argument: bool = False  # whether similarities are the argument of the attribute; else its result
    keeps_gradients: bool = False  # whether to keep gradients of similarities if the loss is backpropagated at once
    similarities: int = 1  # computed for each chunk of a batch


def class_names(loss: Any) -> set[str]:
    """Return the names of the classes of sentence-transformers in the type of a loss."""
    return {cls.__name__ for cls in type(loss).__mro__ if cls.__module__.partition(".")[0] == LIBRARY}
