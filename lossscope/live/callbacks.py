"""Build callbacks for trainers of Lightning, Hugging Face and sentence-transformers; no trainer is imported here."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.errors import InputError, needing

from .logged_columns import Columns, LoggedColumns
from .monitor import LOGGER, LossScope
from .objective_losses import ObjectiveLoss, is_objective_loss
from .observed import Observed, Row
from .recording import replace_function
from .sentence_losses.record import SentenceLoss

PREFIX = "lossscope/"
_NAMES = {"learning_rate": "lr", "grad_norm": "grad_norm"}  # in the logs of a Trainer -> of the field
# names in outputs -> arguments of `watch`; the first complete set wins
_OF_OUTPUTS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("image_embeds", "text_embeds"): ("images", "captions"),
    ("query_embeds", "document_embeds"): ("queries", "documents"),
    **{(name,): ("S",) for name in ("S", "similarity", "logits_per_image")},
    ("embeddings", "labels"): ("embeddings", "labels"),
}


class LightningHooks:
    """Watch what `training_step` returned, or left on the module, and log the row by `pl_module.log_dict`.

    `lightning(scope)` builds a callback with these hooks.

    Args:
        scope: computes the rows.
        name: key or attribute of S; None: see `watch_arguments`.
        prefix: of the logged names.
        columns: to log, `main` or `all`, see `LoggedColumns`; `scope.history` has all columns.
    """

    def __init__(
        self, scope: LossScope, name: str | None = None, prefix: str = PREFIX, columns: Columns = "main"
    ) -> None:
        self.scope, self.name, self.logged = scope, name, LoggedColumns(prefix, columns, bool(scope.doctor))
        self._last_step: int | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Tell the scope how many optimiser steps the training has, where the trainer knows it."""
        self.scope.begin(_steps_of(trainer), int(trainer.global_step))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Watch once per optimiser step, also if a step accumulates several batches."""
        step = int(trainer.global_step)
        if step == self._last_step:
            return
        self._last_step = step
        arguments = watch_arguments(outputs, self.name) or watch_arguments(pl_module, self.name)
        if arguments is None:
            names = _required_names(self.name)
            raise InputError(f"training_step must return, or leave on the module, {names}; it does not")
        row = self.scope.watch(**arguments, step=step, log=_rate_of(getattr(trainer, "optimizers", None) or ()))
        if row is not None:
            pl_module.log_dict(self.logged.of(row))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write the flight recorder when training dies."""
        self.scope.write_after(exception)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Close the scope, so that later errors are not those of the training, and log its summary."""
        self.scope.close()
        if getattr(trainer, "is_global_zero", True):
            _report(self.scope)


class TrainerLogs:
    """Add to the logs of a Hugging Face Trainer the newest value of each statistic since the last logs.

    Args:
        scope: computes the rows.
        prefix: of the logged names.
        columns: to log, `main` or `all`, see `LoggedColumns`; `scope.history` has all columns.
    """

    def __init__(self, scope: LossScope, prefix: str, columns: Columns = "main") -> None:
        self.scope, self.logged = scope, LoggedColumns(prefix, columns, bool(scope.doctor))
        self._pending: Row = {}  # for the next logs
        self._rate: Row = {}  # of the present step, `lr`, where it is known
        self._stack = ExitStack()  # removes the hooks of a training

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tell the scope how many steps the training has, and how many were done before it was resumed."""
        steps = int(getattr(state, "max_steps", 0) or getattr(args, "max_steps", 0) or 0)
        self.scope.begin(steps if steps > 0 else None, int(getattr(state, "global_step", 0)))

    def on_step_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Note the learning rate of the step: logs have it for few steps, and during warm-up guessing is normal."""
        self._rate = _rate_of([objects.get("optimizer")])

    def on_log(self, args: Any, state: Any, control: Any, *, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Add the pending row to the logs of training and to `state.log_history`; pass their numbers to the doctor."""
        self.scope.log(**_known_numbers(logs))
        if not self._pending or logs is None or any(name.startswith("eval_") for name in logs):
            return
        values, self._pending = self.logged.of(self._pending), {}
        logs.update(values)
        if state.log_history:
            state.log_history[-1].update(values)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Remove the hooks from the model and its losses, and log the summary of the training."""
        self.scope.close()
        self._stack.close()
        if getattr(state, "is_world_process_zero", True):
            _report(self.scope)


class TrainerHooks(TrainerLogs):
    """Watch what the model returned in the last forward pass of a step, and add the row to the next logs.

    The row is in `state.log_history`, and in the `logs` of later callbacks; `attach` puts this callback first.
    `hugging_face(scope)` builds a callback with these hooks.

    Args:
        scope: computes the rows.
        name: key or attribute of S; None: see `watch_arguments`.
        prefix: of the logged names.
        columns: to log, `main` or `all`, see `LoggedColumns`; `scope.history` has all columns.
    """

    def __init__(
        self, scope: LossScope, name: str | None = None, prefix: str = PREFIX, columns: Columns = "main"
    ) -> None:
        super().__init__(scope, prefix, columns)
        self.name = name
        self._arguments: dict[str, Any] | None = None  # of `watch`, from the last forward pass

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: nn.Module | None = None, **_: Any) -> None:
        """Register a forward hook on the model, which a Trainer always passes."""
        assert model is not None
        super().on_train_begin(args, state, control)
        self._stack.close()
        self._stack.callback(self._forget)
        self._stack.callback(model.register_forward_hook(self._on_forward).remove)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Watch the batch of the step."""
        if self._arguments is None:
            raise InputError(f"the model must return {_required_names(self.name)} when it trains; it does not")
        row = self.scope.watch(**self._arguments, step=int(state.global_step), log=self._rate)
        self._pending |= row or {}  # None: it was skipped
        self._arguments = None

    def _forget(self) -> None:
        self._arguments = None

    def _on_forward(self, model: nn.Module, inputs: Any, outputs: Any) -> None:
        if model.training:
            arguments = watch_arguments(outputs, self.name)
            self._arguments = None if arguments is None else {key: x.detach() for key, x in arguments.items()}


class SentenceTransformersHooks(TrainerLogs):
    """Watch the inputs of the loss in the last forward pass of a step, and add the row to the next logs.

    Nothing runs twice: the embeddings and similarities are those of the loss itself. With a dictionary of losses, the
    name of the data set precedes each statistic: `nli/q2d/C_neg`.
    `sentence_transformers(scope, loss)` builds a callback with these hooks.

    Args:
        scope: computes the rows; without an objective, W is that of the loss.
        loss: the loss, or losses by the names of their data sets; or a function that returns them when training begins.
        prefix: of the logged names.
        columns: to log, `main` or `all`, see `LoggedColumns`; `scope.history` has all columns.
    """

    def __init__(self, scope: LossScope, loss: Any, prefix: str = PREFIX, columns: Columns = "main") -> None:
        super().__init__(scope, prefix, columns)
        self._loss = loss
        self._step: int | None = None  # the number of the present step, where it is watched
        self._observed: Sequence[Observed] = ()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin to watch each loss. Raises InputError for a loss that cannot be watched."""
        super().on_train_begin(args, state, control)
        self._stack.close()
        self._stack.callback(self._forget)
        losses = self._loss() if callable(self._loss) and not isinstance(self._loss, nn.Module) else self._loss
        for name, loss in _by_name(losses):
            self._register(name, loss)

    def on_step_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Note whether the step is watched, and its learning rate."""
        super().on_step_begin(args, state, control, **objects)
        self._step, self._observed = self.scope.next_step(int(state.global_step) + 1), ()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Compute the statistics of the step's batch. Raises InputError if the step did not call the loss."""
        if self._step is not None:
            if not self._observed:
                raise InputError(
                    "a watched step must call the loss; it did not. The trainer has another loss than the callback: "
                    "use attach(trainer, scope)"
                )
            self._pending |= self.scope.record(self._observed, self._step, log=self._rate)
        self._forget()

    def _forget(self) -> None:
        self._step, self._observed = None, ()

    def _register(self, name: str, loss: nn.Module) -> None:
        """Watch each training call of a loss in watched steps, until training ends."""
        sides = self.scope.named_sides
        watched: ObjectiveLoss | SentenceLoss
        if is_objective_loss(loss):
            watched = ObjectiveLoss(loss, sides)
        else:
            watched = SentenceLoss(loss, self.scope.objective is None, sides)
        forward = loss.forward

        def watched_forward(*args: Any, **kwargs: Any) -> Any:
            if self._step is None or not torch.is_grad_enabled():
                return forward(*args, **kwargs)
            value, observed = watched.call(forward, args, kwargs)
            self._observed = [replace(batch, name="/".join(filter(None, (name, batch.name)))) for batch in observed]
            return value

        self._stack.enter_context(replace_function(loss, "forward", watched_forward))


def lightning(scope: LossScope, name: str | None = None, prefix: str = PREFIX, columns: Columns = "main") -> Any:
    """Return a callback for `Trainer(callbacks=[lightning(scope)])`, see `LightningHooks`.

    Raises InputError when Lightning is not installed, under its new or its old name.
    """
    for package in ("lightning.pytorch", "pytorch_lightning"):
        if importlib.util.find_spec(package.partition(".")[0]) is not None:
            callback = importlib.import_module(package).Callback
            return type("LossScopeCallback", (LightningHooks, callback), {})(scope, name, prefix, columns)
    raise InputError("this callback needs Lightning; its import fails. pip install lightning")


def hugging_face(scope: LossScope, name: str | None = None, prefix: str = PREFIX, columns: Columns = "main") -> Any:
    """Return a callback for `Trainer(callbacks=[hugging_face(scope)])`, see `TrainerHooks`.

    Raises InputError when transformers is not installed.
    """
    return type("LossScopeCallback", (TrainerHooks, _trainer_callback()), {})(scope, name, prefix, columns)


def sentence_transformers(scope: LossScope, loss: Any, prefix: str = PREFIX, columns: Columns = "main") -> Any:
    """Return a callback for `SentenceTransformerTrainer(callbacks=[...])`, see `SentenceTransformersHooks`.

    Args:
        scope: computes the rows; `LossScope()` uses the loss itself.
        loss: the `loss` of the trainer: a module, or modules by the names of their data sets.
        prefix: of the logged names.
        columns: to log, `main` or `all`, see `LoggedColumns`; `scope.history` has all columns.

    Raises:
        InputError: transformers is not installed.
    """
    return type("LossScopeCallback", (SentenceTransformersHooks, _trainer_callback()), {})(scope, loss, prefix, columns)


def attach(
    trainer: Any, scope: LossScope, name: str | None = None, prefix: str = PREFIX, columns: Columns = "main"
) -> Any:
    """Add the callback in front of those of a Trainer, so that TensorBoard and others log its rows, too.

    Args:
        trainer: of Hugging Face, or a SentenceTransformerTrainer, whose loss is then watched.
        scope: computes the rows.
        name: key or attribute of S in what the model returns; None: see `watch_arguments`.
        prefix: of the logged names.
        columns: to log, `main` or `all`, see `LoggedColumns`; `scope.history` has all columns.
    """
    if any(cls.__name__ == "SentenceTransformerTrainer" for cls in type(trainer).__mro__):
        callback = sentence_transformers(scope, lambda: trainer.loss, prefix, columns)
    else:
        callback = hugging_face(scope, name, prefix, columns)
    trainer.callback_handler.callbacks.insert(0, callback)
    return callback


def _trainer_callback() -> Any:
    with needing("hf", "this callback needs transformers"):
        from transformers import TrainerCallback
    return TrainerCallback


def watch_arguments(outputs: Any, name: str | None = None) -> dict[str, Any] | None:
    """Return the arguments of `watch` from a mapping or an object's attributes; None where it has none.

    Embeddings of both sides come before S, similarity and logits_per_image, which may be scaled: W belongs to the
    cosine. Embeddings of one set need their labels.

    Args:
        outputs: of a model or a training step.
        name: key or attribute of S; None: the names above.
    """

    def tensor(key: str) -> Tensor | None:
        value = outputs.get(key) if isinstance(outputs, Mapping) else getattr(outputs, key, None)
        return value if isinstance(value, Tensor) else None

    for names, arguments in (_OF_OUTPUTS if name is None else {(name,): ("S",)}).items():
        values = [tensor(key) for key in names]
        if all(x is not None for x in values):
            return dict(zip(arguments, values, strict=True))
    return None


def _rate_of(optimisers: Sequence[Any]) -> dict[str, float]:
    """Return the learning rate of the first parameter group of the first optimiser, if any."""
    groups = getattr(optimisers[0], "param_groups", None) if len(optimisers) else None
    return {"lr": float(groups[0]["lr"])} if groups else {}


def _steps_of(trainer: Any) -> int | None:
    """Return the optimiser steps of a Lightning training; None where it stops by itself or after a time."""
    steps = getattr(trainer, "estimated_stepping_batches", None)
    return int(steps) if steps is not None and 0 < steps < math.inf else None


def _required_names(name: str | None) -> str:
    """Return the names in outputs that `watch_arguments` reads: `S, similarity, ... or embeddings and labels`."""
    *others, last = (" and ".join(names) for names in sorted(_OF_OUTPUTS, key=len))
    return name or f"{', '.join(others)} or {last}"


def _by_name(losses: Any) -> list[tuple[str, nn.Module]]:
    """Return each loss once, with the names of its data sets, if several. Raises InputError for no module."""
    if not isinstance(losses, Mapping):
        losses = {"": losses}
    for loss in losses.values():
        if not isinstance(loss, nn.Module):
            raise InputError(
                f"the loss must be a module when training begins; got {type(loss).__name__}. The trainer calls a "
                "function that builds it: use attach(trainer, scope)"
            )
    unique: dict[int, nn.Module] = {id(loss): loss for loss in losses.values()}
    if len(unique) == 1:
        return [("", next(iter(unique.values())))]
    return [("+".join(name for name, loss in losses.items() if loss is module), module) for module in unique.values()]


def _known_numbers(logs: Mapping[str, Any] | None) -> Row:
    """Return the logged numbers that the doctor reads: learning rate and norm of the gradient."""
    found = {name: (logs or {}).get(key) for key, name in _NAMES.items()}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


def _report(scope: LossScope) -> None:
    """Log the summary of a training, or write it to stderr if the logger `lossscope` is not set up."""
    if LOGGER.level == logging.NOTSET and not LOGGER.isEnabledFor(logging.INFO):
        sys.stderr.write(f"{scope.summary()}\n")
    else:
        LOGGER.info("%s", scope.summary())
