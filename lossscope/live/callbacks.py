"""The hook where the loop belongs to a framework: Lightning's and Hugging Face's Trainer. Neither is imported here."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from lossscope.errors import InputError

from .monitor import LossScope, Row

PREFIX = "lossscope/"
_S = ("S", "similarity", "logits_per_image")


class LightningHooks:
    """Watches what `training_step` returned, or left on the module, and logs the row through `pl_module.log_dict`.

    name: under which S is found; else what `found` knows. `lightning(scope)` makes a callback of it.
    """

    def __init__(self, scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> None:
        self.scope, self.name, self.prefix = scope, name, prefix
        self._last: int | None = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Once a step of the optimiser, whatever the batches it was gathered from."""
        step = int(trainer.global_step)
        if step == self._last:
            return
        self._last = step
        held = found(outputs, self.name) or found(pl_module, self.name)
        if held is None:
            raise InputError(f"training_step must return, or leave on the module, {_wanted(self.name)}; it does not")
        row = self.scope.watch(**held, step=step)
        if row is not None:
            pl_module.log_dict(_named(row, self.prefix))


class TrainerHooks:
    """Watches what the model returned in the last forward pass of a step, and adds the row to what is logged next.

    The row is in `state.log_history` and in the `logs` of callbacks that come later; `attach` puts it before all.
    name: under which S is found; else what `found` knows. `hugging_face(scope)` makes a callback of it.
    """

    def __init__(self, scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> None:
        self.scope, self.name, self.prefix = scope, name, prefix
        self._hook: Any = None
        self._held: dict[str, Any] | None = None
        self._row: Row | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: nn.Module, **_: Any) -> None:
        """Listen to the model."""
        self.on_train_end(args, state, control)
        self._hook = model.register_forward_hook(self._caught)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Watch the batch that was just trained."""
        if self._held is None:
            raise InputError(f"the model must return {_wanted(self.name)} when it trains; it does not")
        self._row = self.scope.watch(**self._held, step=int(state.global_step)) or self._row
        self._held = None

    def on_log(self, args: Any, state: Any, control: Any, *, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Add the newest row that was not logged yet to the logs of training."""
        if self._row is None or logs is None or any(name.startswith("eval_") for name in logs):
            return
        more, self._row = _named(self._row, self.prefix), None
        logs.update(more)
        if state.log_history:
            state.log_history[-1].update(more)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Listen no longer."""
        if self._hook is not None:
            self._hook.remove()
        self._hook = self._held = None

    def _caught(self, model: nn.Module, inputs: Any, outputs: Any) -> None:
        if model.training:
            held = found(outputs, self.name)
            self._held = None if held is None else {name: tensor.detach() for name, tensor in held.items()}


def lightning(scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> Any:
    """`Trainer(callbacks=[lightning(scope)])`. Raises InputError when neither `lightning` nor its old name is there."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        if importlib.util.find_spec(package.partition(".")[0]) is not None:
            callback = importlib.import_module(package).Callback
            return type("LossScopeCallback", (LightningHooks, callback), {})(scope, name, prefix)
    raise InputError("this callback needs Lightning, which is not installed; install lightning")


def hugging_face(scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> Any:
    """`Trainer(callbacks=[hugging_face(scope)])`. Raises InputError when transformers is not there."""
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise InputError("this callback needs transformers; install lossscope[hf]") from error
    return type("LossScopeCallback", (TrainerHooks, TrainerCallback), {})(scope, name, prefix)


def attach(trainer: Any, scope: LossScope, name: str | None = None, prefix: str = PREFIX) -> Any:
    """The callback, put before those of a Hugging Face Trainer, so that TensorBoard and the like get its rows too."""
    made = hugging_face(scope, name, prefix)
    trainer.callback_handler.callbacks.insert(0, made)
    return made


def found(held: Any, name: str | None = None) -> dict[str, Any] | None:
    """What `watch` is given of a mapping's values or an object's attributes; None when there is nothing of the kind.

    image_embeds and text_embeds come before S, similarity and logits_per_image, which may be scaled: what W is taken of
    is the cosine.
    """

    def tensor(key: str) -> Tensor | None:
        value = held.get(key) if isinstance(held, Mapping) else getattr(held, key, None)
        return value if isinstance(value, Tensor) else None

    images, captions = tensor("image_embeds"), tensor("text_embeds")
    if name is None and images is not None and captions is not None:
        return {"images": images, "captions": captions}
    for key in (name,) if name else _S:
        S = tensor(key)
        if S is not None:
            return {"S": S}
    return None


def _wanted(name: str | None) -> str:
    return name or "S, or image_embeds and text_embeds"


def _named(row: Row, prefix: str) -> Row:
    return {f"{prefix}{name}": value for name, value in row.items()}
