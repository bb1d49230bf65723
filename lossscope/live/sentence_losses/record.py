"""Record what a loss of sentence-transformers sees in a call; in each dimension of a Matryoshka loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from lossscope.core.sides import QUERY_DOCUMENT, Sides
from lossscope.errors import InputError
from lossscope.objectives.custom.signature import call_parameters

from ..batch_inputs import BatchInputs
from ..observed import MOST_ENTRIES, Observed, Result
from ..recording import Call, bound_arguments, record_calls
from .base import LossCall, LossReader, class_names
from .guided import guided_loss
from .pairs import distance_loss, pair_loss
from .ranking import ranking_loss

Arguments = tuple[Any, ...]
READERS: Mapping[str, Callable[[Any], LossReader]] = {
    "MultipleNegativesRankingLoss": ranking_loss,
    "CachedMultipleNegativesRankingLoss": ranking_loss,
    "GISTEmbedLoss": guided_loss,
    "CachedGISTEmbedLoss": guided_loss,
    "CoSENTLoss": pair_loss,
    "ContrastiveLoss": distance_loss,
    "OnlineContrastiveLoss": distance_loss,
    "CosineSimilarityLoss": partial(pair_loss, attribute="cos_score_transformation", reads_argument=True),
}
_MATRYOSHKA = "MatryoshkaLoss"


@dataclass(frozen=True)
class SentenceLoss:
    """Watch a loss of sentence-transformers.

    Raises InputError for a loss that has no similarities to read, unless an objective is given and it has embeddings.
    """

    loss: Any
    is_objective: bool = True  # whether W belongs to the loss itself; else an objective is given
    sides: Sides | None = None  # None: query and document

    def __post_init__(self) -> None:
        self.reader()

    @property
    def _inner(self) -> Any:
        """The loss that computes similarities, inside a Matryoshka loss."""
        return self.loss.loss if _MATRYOSHKA in class_names(self.loss) else self.loss

    def reader(self) -> LossReader:
        """Return the reader of the loss."""
        names = class_names(self._inner)
        for name, reader in READERS.items():
            if name in names:
                return reader(self._inner)
        if not self.is_objective and hasattr(self._inner, "compute_loss_from_embeddings"):
            return columns_loss(self._inner)
        raise InputError(
            f"{type(self._inner).__name__} has no readable weights on similarities. Losses that have: "
            f"{', '.join([*READERS, _MATRYOSHKA])}. For another, name an objective to look with: "
            "LossScope('ntxent:tau=0.05')"
        )

    def call(self, loss: Callable[..., Any], args: Arguments, kwargs: Mapping[str, Any]) -> Result:
        """Return the result of the loss, and what it saw.

        Args:
            loss: the loss itself, or its method `forward`.
            args: of the call: sentence features and labels.
            kwargs: likewise.
        """
        reader, inner = self.reader(), self._inner
        is_cached = bool(getattr(inner, "uses_gradient_cache", type(inner).__name__.startswith("Cached")))
        calls = RecordedCalls(reader, is_cached)
        observed: list[Observed] = []

        def on_loss(args: Arguments, kwargs: Mapping[str, Any], value: Any) -> None:
            call = LossCall(
                args, kwargs, value, tuple(calls.calls), is_cached, self.sides or QUERY_DOCUMENT, self.is_objective
            )
            batch = replace(reader.observed(call), name=self._name(call))
            observed.append(batch.of_first_rows() if calls.is_full else batch.limited())
            calls.clear()

        with ExitStack() as stack:
            stack.enter_context(record_calls(reader.owner, reader.attribute, calls.add))
            inside = self._call_inside(is_cached)
            if inside is not None:
                stack.enter_context(record_calls(*inside, on_loss))
            value = loss(*args, **kwargs)
            if inside is None:
                on_loss(args, kwargs, value)
        return value, observed

    def _call_inside(self, is_cached: bool) -> tuple[Any, str] | None:
        """Return the function that runs once a batch or dimension; None where that is the loss itself."""
        is_matryoshka = self._inner is not self.loss
        if not is_cached:
            return (self._inner, "forward") if is_matryoshka else None
        return (self._inner.calculate_loss, "fn") if is_matryoshka else (self.loss, "calculate_loss")

    def _name(self, call: LossCall) -> str:
        """Return `dim64` in a Matryoshka loss, else an empty text."""
        if self._inner is self.loss:
            return ""
        width = getattr(self.loss.model.forward, "dim", None)  # set while it truncates the output of the model
        return f"dim{call.features[0][0].shape[-1] if width is None else width}"


@dataclass
class RecordedCalls:
    """Record the calls of a batch, up to MOST_ENTRIES similarities, in whole chunks."""

    reader: LossReader
    is_chunked: bool  # whether the loss computes a batch in chunks and frees each
    function: Any = field(init=False)  # the called function or module, before recording
    calls: list[Call] = field(default_factory=list)
    is_full: bool = False  # whether chunks were left out

    def __post_init__(self) -> None:
        self.function = getattr(self.reader.owner, self.reader.attribute)

    def add(self, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> None:
        """Keep a call, unless the recording is full."""
        begins_chunk = len(self.calls) % self.reader.similarities == 0
        if self.is_chunked and begins_chunk and sum(call.result.numel() for call in self.calls) >= MOST_ENTRIES:
            self.is_full = True
        if self.is_full:
            return
        arguments = args
        if kwargs:
            arguments = tuple(bound_arguments(call_parameters(self.function), args, kwargs).values())
        similarities = arguments[0] if self.reader.reads_argument else result
        keeps_gradient = self.is_chunked and self.reader.keeps_gradients
        call = Call(arguments, similarities if keeps_gradient or not self.is_chunked else similarities.detach())
        if keeps_gradient:
            call.keep_gradient()
        self.calls.append(call)

    def clear(self) -> None:
        """Forget the batch."""
        self.calls, self.is_full = [], False


def columns_loss(loss: Any) -> LossReader:
    """Return the reader of the embeddings of any loss, for a named objective."""
    return LossReader(loss, partial(_observed_columns, type(loss).__name__), "compute_loss_from_embeddings")


def _observed_columns(name: str, call: LossCall) -> Observed:
    """Return the rows of the first column, queries, against all others, documents."""
    columns = call.calls[0].args[0] if call.calls else []
    if len(columns) < 2:
        raise InputError(f"{name} must have two columns or more; got {len(columns)}")
    queries, documents = columns[0].detach(), torch.cat([column.detach() for column in columns[1:]])
    observed = BatchInputs(queries=queries, documents=documents).rows(call.sides).observed()
    return Observed(observed.rows, call.sides, observed.directions, observed.second)
