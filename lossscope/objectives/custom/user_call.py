"""Call the user's code: on a copy of what it is now, in float64, with a result that is checked."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.core.cached import cached_property
from lossscope.errors import InputError

from .call_advice import DTYPE, advice_on
from .copies import copy_in_float64, is_small
from .float64_mode import Float64Mode
from .signature import CallForm, constructor_parameters, is_function

Arguments = tuple[Any, ...]


@dataclass(eq=False)
class UserCall:
    """The user's loss with its options: arguments -> F, () or (b,)."""

    target: Any  # function, class or object
    form: CallForm
    label: str  # for messages
    options: Mapping[str, Any]  # of the class, or of every call of a function
    scalars: tuple[float, ...] = ()  # arguments after the features
    is_flat: bool = field(default=False, init=False)  # whether all views are (2b, d), first views before second
    promotes: bool = field(default=False, init=False)  # whether it was seen to need Float64Mode

    @cached_property
    def origin(self) -> Callable[..., Any]:
        """What copies are made of: the user's function or object, or one that is built of the user's class."""
        if not isinstance(self.target, type):
            return self.target  # type: ignore[no-any-return]
        parameters = constructor_parameters(self.target)
        options = {name: value for name, value in self.options.items() if name in parameters}
        if "model" in parameters:
            options["model"] = nn.Identity()
        return self.target(**options)  # type: ignore[no-any-return]

    def arguments(self, queries: Tensor, candidates: Tensor) -> Arguments:
        """Return the arguments of a call, from embeddings of pairs, (b, d) and (b, d)."""
        if self.form == "S":
            return (queries @ candidates.T,)
        if self.form == "labels":
            labels = torch.arange(len(queries), device=queries.device)
            return queries, labels, None, candidates, labels.clone()  # the same object would mean the same items
        if self.form == "sentences":
            return ([{"sentence_embedding": queries}, {"sentence_embedding": candidates}], None)
        if self.form == "masked":
            match = torch.eye(len(queries), dtype=torch.bool, device=queries.device)
            return queries @ candidates.T, match
        if self.form == "views":
            return (torch.cat([queries, candidates]) if self.is_flat else torch.stack([queries, candidates], 1),)
        if self.form == "classes":
            labels = torch.arange(len(queries), device=queries.device).repeat(2)
            return torch.cat([queries, candidates]), labels
        return queries, candidates, *(queries.new_tensor(value) for value in self.scalars)

    def __call__(self, arguments: Arguments, loss: Callable[..., Any] | None = None) -> Tensor:
        """Run the user's code. Raises InputError unless it returns a finite tensor, one number or one a query.

        Args:
            arguments: as `arguments` returns them.
            loss: the copy to call; None: a new one of what the loss is now.
        """
        pairs = len(_first(arguments))
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout has the results
                value = self._value(arguments, loss)
        except Exception as error:
            raise InputError(
                f"{self.label} must run on a batch of {pairs} pairs; it raised {type(error).__name__}: {_text(error)}"
                f"{advice_on(error, self.form)}"
            ) from error
        return _checked(value, pairs, self.label)

    def copy(self, arguments: Arguments) -> Callable[..., Any]:
        """Return a copy of the loss as it is now, in float64 on the device of the arguments; a function as it is.

        A module of many parameters is copied once, and then given the present ones.
        """
        loss = self.origin
        if not isinstance(loss, nn.Module):
            return copy_in_float64(loss, self.label)
        if is_small(loss):
            return copy_in_float64(loss, self.label).to(_first(arguments).device)  # type: ignore[attr-defined, no-any-return]
        self._large_copy.load_state_dict(loss.state_dict())
        return self._large_copy.to(_first(arguments).device)

    def _value(self, arguments: Arguments, loss: Callable[..., Any] | None) -> Any:
        options = self.options if is_function(self.target) else {}
        if not self.promotes:
            try:
                return (loss or self.copy(arguments))(*arguments, **options)
            except RuntimeError as error:
                if not DTYPE.search(str(error)):
                    raise
        with Float64Mode():
            value = (loss or self.copy(arguments))(*arguments, **options)
        self.promotes = True
        return value

    @cached_property
    def _large_copy(self) -> nn.Module:
        copied: nn.Module = copy_in_float64(self.origin, self.label)  # type: ignore[assignment]
        return copied


def _text(error: Exception) -> str:
    """Return the message of an error; of one inside TorchScript only its last line, below the traceback."""
    text = str(error).strip()
    return text.splitlines()[-1].removeprefix("RuntimeError: ") if "Traceback of TorchScript" in text else text


def _first(arguments: Arguments) -> Tensor:
    first = arguments[0]
    tensor: Tensor = first[0]["sentence_embedding"] if isinstance(first, list) else first
    return tensor


def _checked(value: Any, pairs: int, label: str) -> Tensor:
    """Return the value, () or (pairs,). Raises InputError for anything else, and where it is not finite."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.reshape(())
    if not isinstance(value, Tensor) or value.shape not in ((), (pairs,)):
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise InputError(f"{label} must return one number, or one per query, ({pairs},); got {got}")
    if not bool(torch.isfinite(value).all()):
        raise InputError(f"{label} must return finite numbers; got {float(value.detach().sum())}")
    return value
