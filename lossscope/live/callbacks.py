"""Callbacks for the trainers of Lightning, Hugging Face and sentence-transformers; none of them is imported here."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from lossscope.errors import InputError

from .monitor import LossScope
from .row_log import PREFIX, RowLog, known_numbers, with_prefix
from .sentence_trainer import SentenceTransformersHooks

# names in outputs -> arguments of `watch`, the first that are all there
_OF_OUTPUTS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("image_embeds", "text_embeds"): ("images", "captions"),
    ("query_embeds", "document_embeds"): ("queries", "documents"),
    **{(name,): ("S",) for name in ("S", "similarity", "logits_per_image")},
    ("embeddings", "labels"): ("embeddings", "labels"),
}


class LightningHooks:
    """Watch what `training_step` returned, or left on the module, and log the row through `pl_module.log_dict`.

    `lightning(scope)` builds a callback with these hooks.

    Args:
        scope: computes the rows.
        name: key or attribute of S; None: see `watch_arguments`.
        prefix: of the names that are logged.
    """

    def __init__(self, scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> None:
        self.scope, self.name, self.prefix = scope, name, prefix
        self._last_step: int | None = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Watch once per optimiser step, also where several batches are accumulated to one step."""
        step = int(trainer.global_step)
        if step == self._last_step:
            return
        self._last_step = step
        arguments = watch_arguments(outputs, self.name) or watch_arguments(pl_module, self.name)
        if arguments is None:
            names = _required_names(self.name)
            raise InputError(f"training_step must return, or leave on the module, {names}; it does not")
        row = self.scope.watch(**arguments, step=step, log=_rate_of(trainer))
        if row is not None:
            pl_module.log_dict(with_prefix(row, self.prefix))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write the flight recorder where training died."""
        self.scope.write_after(exception)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Let the flight recorder know that what fails later is not the training."""
        self.scope.close()


class TrainerHooks:
    """Watch what the model returned in the last forward pass of a step, and add the row to the next logs.

    The row is in `state.log_history`, and in the `logs` of callbacks that come later; `attach` puts this one first.
    `hugging_face(scope)` builds a callback with these hooks.

    Args:
        scope: computes the rows.
        name: key or attribute of S; None: see `watch_arguments`.
        prefix: of the names that are logged.
    """

    def __init__(self, scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> None:
        self.scope, self.name, self._log = scope, name, RowLog(prefix)
        self._hook: Any = None
        self._arguments: dict[str, Any] | None = None  # of `watch`, from the last forward pass

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: nn.Module, **_: Any) -> None:
        """Register a forward hook on the model."""
        self._remove()
        self._hook = model.register_forward_hook(self._on_forward)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Watch the batch of the step."""
        if self._arguments is None:
            raise InputError(f"the model must return {_required_names(self.name)} when it trains; it does not")
        self._log.add(self.scope.watch(**self._arguments, step=int(state.global_step)))
        self._arguments = None

    def on_log(self, args: Any, state: Any, control: Any, *, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Add the newest row that is not logged yet to the logs of training; tell the doctor what is in them."""
        self.scope.log(**known_numbers(logs))
        self._log.write(state, logs)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Remove the forward hook."""
        self.scope.close()
        self._remove()

    def _remove(self) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._hook = self._arguments = None

    def _on_forward(self, model: nn.Module, inputs: Any, outputs: Any) -> None:
        if model.training:
            arguments = watch_arguments(outputs, self.name)
            self._arguments = None if arguments is None else {key: x.detach() for key, x in arguments.items()}


def lightning(scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> Any:
    """Return a callback for `Trainer(callbacks=[lightning(scope)])`, see `LightningHooks`.

    Raises InputError when Lightning is not installed, under its new or its old name.
    """
    for package in ("lightning.pytorch", "pytorch_lightning"):
        if importlib.util.find_spec(package.partition(".")[0]) is not None:
            callback = importlib.import_module(package).Callback
            return type("LossScopeCallback", (LightningHooks, callback), {})(scope, name, prefix)
    raise InputError("this callback needs Lightning, which is not installed; install lightning")


def hugging_face(scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> Any:
    """Return a callback for `Trainer(callbacks=[hugging_face(scope)])`, see `TrainerHooks`.

    Raises InputError when transformers is not installed.
    """
    return type("LossScopeCallback", (TrainerHooks, _trainer_callback()), {})(scope, name, prefix)


def sentence_transformers(scope: LossScope, loss: Any, prefix: str = PREFIX) -> Any:
    """Return a callback for `SentenceTransformerTrainer(callbacks=[...])`, see `SentenceTransformersHooks`.

    Args:
        scope: computes the rows; `LossScope()` looks with the loss itself.
        loss: what the trainer is given as `loss`: a module, or modules by the names of their data sets.
        prefix: of the names that are logged.

    Raises:
        InputError: transformers is not installed.
    """
    return type("LossScopeCallback", (SentenceTransformersHooks, _trainer_callback()), {})(scope, loss, prefix)


def attach(trainer: Any, scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> Any:
    """Add the callback in front of those of a Trainer, so that TensorBoard and others log its rows too.

    Args:
        trainer: of Hugging Face, or a SentenceTransformerTrainer, whose loss is then watched.
        scope: computes the rows.
        name: key or attribute of S in what the model returns; None: see `watch_arguments`.
        prefix: of the names that are logged.
    """
    if any(cls.__name__ == "SentenceTransformerTrainer" for cls in type(trainer).__mro__):
        callback = sentence_transformers(scope, lambda: trainer.loss, prefix)
    else:
        callback = hugging_face(scope, name, prefix)
    trainer.callback_handler.callbacks.insert(0, callback)
    return callback


def _trainer_callback() -> Any:
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise InputError("this callback needs transformers; install lossscope[hf]") from error
    return TrainerCallback


def watch_arguments(outputs: Any, name: str | None = None) -> dict[str, Any] | None:
    """Return the arguments of `watch` in a mapping's values or an object's attributes; None when it has none.

    Embeddings of both sides are preferred to S, similarity and logits_per_image, which may be scaled: W is that of the
    cosine. Embeddings of one set come with their labels.

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


def _rate_of(trainer: Any) -> dict[str, float]:
    """Return the learning rate of the first optimiser of a Lightning trainer, where it has any."""
    optimisers = getattr(trainer, "optimizers", None) or ()
    return {"lr": float(optimisers[0].param_groups[0]["lr"])} if optimisers else {}


def _required_names(name: str | None) -> str:
    """Return the names in outputs that `watch_arguments` reads: `S, similarity, ... or embeddings and labels`."""
    *others, last = (" and ".join(names) for names in sorted(_OF_OUTPUTS, key=len))
    return name or f"{', '.join(others)} or {last}"
