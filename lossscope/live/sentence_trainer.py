"""Watch the loss of a SentenceTransformerTrainer, or the losses of its data sets, while it trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from lossscope.errors import InputError

from .monitor import LossScope
from .observed import Observed
from .recording import replace_function
from .row_log import PREFIX, RowLog, known_numbers
from .sentence_losses.record import SentenceLoss


class SentenceTransformersHooks:
    """Watch what the loss computes from, in the last forward pass of a step, and add the row to the next logs.

    Nothing runs twice: the embeddings and similarities are those of the loss itself. Of a dictionary of losses each row
    has the name of the data set before its statistics: `nli/q2d/C_neg`.
    `sentence_transformers(scope, loss)` builds a callback with these hooks.

    Args:
        scope: computes the rows; without an objective, W is that of the loss.
        loss: the loss, or losses by the names of their data sets; or a function that returns them when training begins.
        prefix: of the names that are logged.
    """

    def __init__(self, scope: LossScope, loss: Any, prefix: str = PREFIX) -> None:
        self.scope, self._loss, self._log = scope, loss, RowLog(prefix)
        self._stack = ExitStack()  # gives the losses back their own forward methods
        self._step: int | None = None  # the number of the present step, where it is watched
        self._observed: Sequence[Observed] = ()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin to look at each loss. Raises InputError for one that cannot be watched."""
        self._leave()
        losses = self._loss() if callable(self._loss) and not isinstance(self._loss, nn.Module) else self._loss
        for name, loss in _by_name(losses):
            self._register(name, loss)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note whether the step is watched."""
        self._step, self._observed = self.scope.next_step(int(state.global_step) + 1), ()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Compute the statistics of the step's batch. Raises InputError where the loss was not called in it."""
        if self._step is not None:
            if not self._observed:
                raise InputError(
                    "the loss must be called in a step that is watched; it was not. The trainer has another loss than "
                    "the callback: use attach(trainer, scope)"
                )
            self._log.add(self.scope.record(self._observed, self._step))
        self._step, self._observed = None, ()

    def on_log(self, args: Any, state: Any, control: Any, *, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Add the newest statistics that are not logged yet to the logs of training; the doctor reads these."""
        self.scope.log(**known_numbers(logs))
        self._log.write(state, logs)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave the losses alone again."""
        self.scope.close()
        self._leave()

    def _leave(self) -> None:
        self._stack.close()
        self._step, self._observed = None, ()

    def _register(self, name: str, loss: nn.Module) -> None:
        """Look at each training call of a loss in the steps that are watched, until training ends."""
        watched = SentenceLoss(loss, self.scope.objective is None, self.scope.named_sides)
        forward = loss.forward

        def watched_forward(*args: Any, **kwargs: Any) -> Any:
            if self._step is None or not torch.is_grad_enabled():
                return forward(*args, **kwargs)
            value, observed = watched.call(forward, args, kwargs)
            self._observed = [replace(one, name="/".join(filter(None, (name, one.name)))) for one in observed]
            return value

        self._stack.enter_context(replace_function(loss, "forward", watched_forward))


def _by_name(losses: Any) -> list[tuple[str, nn.Module]]:
    """Return each loss once, with the names of its data sets; one for all has none. Raises InputError for no module."""
    if not isinstance(losses, Mapping):
        losses = {"": losses}
    for loss in losses.values():
        if not isinstance(loss, nn.Module):
            raise InputError(
                f"the loss must be a module when training begins; got {type(loss).__name__}. A function that builds it "
                "is called by the trainer: use attach(trainer, scope)"
            )
    unique: dict[int, nn.Module] = {id(loss): loss for loss in losses.values()}
    if len(unique) == 1:
        return [("", next(iter(unique.values())))]
    return [("+".join(n for n, loss in losses.items() if loss is one), one) for one in unique.values()]
