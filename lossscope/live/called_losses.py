"""Watch any function or module that computes a loss from S, two batches of embeddings, or features and scale."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.sides import IMAGE_TEXT, QUERY_DOCUMENT, Sides
from lossscope.errors import InputError, SpecError
from lossscope.objectives.base import Objective
from lossscope.objectives.custom.as_objective import as_objective, name_of_loss
from lossscope.objectives.custom.signature import ONE_SET_FORMS, CallForm, call_form, call_parameters, unwrapped
from lossscope.objectives.custom.wrap_loss import wrap_loss
from lossscope.objectives.custom.wrapped_loss import WrappedLoss

from .batch_inputs import BatchInputs
from .observed import Observed, Result
from .recording import bound_arguments, unchanged_random_state

_SCALARS = ("logit_scale", "logit_bias")


@dataclass
class CalledLoss:
    """A loss that hides its similarities: W is computed on a copy of the loss, as for LossScope(loss).

    Raises SpecError for a loss whose parameters have no known form, InputError for a loss of labels.
    """

    loss: Any
    objective: Objective | None = None  # None: the loss itself
    sides: Sides | None = None
    _target: Any = field(init=False)  # the loss without compilation
    _form: CallForm = field(init=False)

    def __post_init__(self) -> None:
        self._target = unwrapped(self.loss)
        self._form = _form_of(self._target)
        if self.objective is None:
            self._own = as_objective(self._target)
            if self._form in ONE_SET_FORMS:
                _require_counted(self._own, name_of_loss(self._target))

    def __reduce__(self) -> Any:
        """Return how to copy and pickle it: built anew, as the objective of a loss belongs to that loss."""
        return CalledLoss, (self.loss, self.objective, self.sides)

    def call(self, loss: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result:
        """Return the result of the loss, and its arguments as observed."""
        return loss(*args, **kwargs), [self._observed(bound_arguments(call_parameters(self._target), args, kwargs))]

    def _observed(self, arguments: dict[str, Any]) -> Observed:
        sides = self.sides or IMAGE_TEXT
        first = [x.detach() for name, x in arguments.items() if isinstance(x, Tensor) and name not in _SCALARS]
        if self._is_one_set:
            observed = self._one_set(first).rows(self.sides).observed()
            return replace(observed, objective=self._objective_of(arguments))
        names = ("S",) if self._form == "S" else (IMAGE_TEXT if sides.is_image_text else QUERY_DOCUMENT).keys
        given: dict[str, Any] = dict(zip(names, first, strict=False))
        observed = BatchInputs(**given).rows(sides).observed()
        return replace(observed, objective=self._objective_of(arguments))

    @cached_property
    def _is_one_set(self) -> bool:
        """Whether the loss compares all items of its batch with each other, as SimCLR does."""
        if self._form in ("S", "masked", "features"):
            return False
        loss = self._own if self.objective is None else as_objective(self._target)
        return isinstance(loss, WrappedLoss) and loss.needs_one_set

    def _one_set(self, first: list[Tensor]) -> BatchInputs:
        """Return the batch of a call with both views, with all of them, or with embeddings and labels."""
        if self._form == "classes":
            return BatchInputs(embeddings=first[0], labels=first[1])
        return BatchInputs(embeddings=torch.stack(first[:2], 1) if self._form == "embeddings" else first[0])

    def _objective_of(self, arguments: Mapping[str, Any]) -> Objective | None:
        """Return the loss itself, with the scale and bias of the step where the call has them.

        Raises InputError for a loss of features without a scale, and for a bias that is not its fourth parameter.
        """
        if self.objective is not None:
            return None
        if self._form != "features":
            return self._own
        parameters = call_parameters(self._target)
        if _SCALARS[0] in parameters:
            named = {name: parameters[name].default for name in _SCALARS if name in parameters} | dict(arguments)
        else:
            named = dict(zip(_SCALARS, list(arguments.values())[2:], strict=False))
        given = {key: named[key] for key in _SCALARS if not _is_missing(named.get(key))}
        name = name_of_loss(self._target)
        if _SCALARS[0] not in given:
            raise InputError(f"{name} must be called with a logit_scale to be watched; got none. Give it the scale")
        values = {key: float(x.detach() if isinstance(x, Tensor) else x) for key, x in given.items()}
        objective = self._with_bias(name) if self._lacks_bias(values) else self._own
        with unchanged_random_state():
            fields = {key: x for key, x in values.items() if hasattr(objective, key)}
            scaled: Objective = replace(objective, **fields)  # type: ignore[type-var]
        return scaled

    def _lacks_bias(self, values: Mapping[str, float]) -> bool:
        """Return whether the call has a bias that differs from the default, and the objective has none."""
        if _SCALARS[1] not in values or hasattr(self._own, _SCALARS[1]):
            return False
        parameter = call_parameters(self._target).get(_SCALARS[1])
        return parameter is None or bool(parameter.default != values[_SCALARS[1]])

    def _with_bias(self, name: str) -> Objective:
        """Return the loss as an objective that passes logit_bias."""
        parameters = list(call_parameters(self._target))
        if parameters[2:4] != list(_SCALARS):
            raise InputError(
                f"logit_scale and logit_bias of {name} must be its third and fourth parameters; "
                f"got {', '.join(parameters)}. Write a function of these four that calls it"
            )
        return wrap_loss(self._target, name, with_bias=True)()


def _require_counted(loss: Objective, name: str) -> None:
    """Raise InputError, before the training, for a loss of all items that W does not describe."""
    with unchanged_random_state():
        try:
            _ = cast(WrappedLoss, loss).measured_traits
        except InputError as error:
            raise InputError(
                f"{error}. Or watch the embeddings with the objective that {name} is: "
                "LossScope('supcon:tau=T').watch(embeddings=..., labels=...); of several losses, wrap each"
            ) from error


def _form_of(target: Any) -> CallForm:
    """Return the form of the call. Raises SpecError for an unknown form, InputError for a call with labels."""
    parameters, name = call_parameters(target), name_of_loss(target)
    try:
        form = call_form(target, parameters, name)
    except SpecError:
        if "labels" not in parameters:
            raise
        form = "labels"
    if form in ("labels", "sentences"):
        raise InputError(
            f"{name} takes labels and has no readable distance between items; losses of several losses have "
            "none. Watch its embeddings with the objective that it is: "
            "LossScope('supcon:tau=T').watch(embeddings=..., labels=...)"
        )
    return form


def _is_missing(value: Any) -> bool:
    return value is None or value is inspect.Parameter.empty
