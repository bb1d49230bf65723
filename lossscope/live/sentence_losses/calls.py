"""Calls of the similarity of a loss, of so many chunks of a batch as have room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lossscope.objectives.custom.signature import call_parameters

from ..call_arguments import bound_arguments
from ..observed import MOST_ENTRIES
from ..recording import Call


@dataclass
class RecordedCalls:
    """The calls of one batch, until MOST_ENTRIES similarities are kept; a chunk is kept as a whole or not at all."""

    function: Any  # what is called: a function or a module
    per_chunk: int  # similarities that are computed for each chunk
    is_chunked: bool  # whether the loss computes a batch in chunks, and lets go of each
    reads_argument: bool  # whether similarities are the first argument of a call; else its result
    keeps_gradients: bool  # whether the gradient of each is needed, of a loss that is backpropagated at once
    calls: list[Call] = field(default_factory=list)
    is_full: bool = False  # whether chunks were left out

    def add(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Keep a call, unless there are enough."""
        begins_chunk = len(self.calls) % self.per_chunk == 0
        if self.is_chunked and begins_chunk and sum(one.result.numel() for one in self.calls) >= MOST_ENTRIES:
            self.is_full = True
        if self.is_full:
            return
        arguments = args
        if kwargs:
            arguments = tuple(bound_arguments(call_parameters(self.function), args, kwargs).values())
        similarities = arguments[0] if self.reads_argument else result
        keeps_graph = self.keeps_gradients or not self.is_chunked
        call = Call(arguments, similarities if keeps_graph else similarities.detach())
        if self.keeps_gradients:
            call.keep_gradient()
        self.calls.append(call)

    def clear(self) -> None:
        """Forget the batch."""
        self.calls, self.is_full = [], False
