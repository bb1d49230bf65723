"""Any function or module that computes a loss: of S, of two batches of embeddings, or of features and their scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.errors import InputError, SpecError
from lossscope.objectives.base import Objective
from lossscope.objectives.custom.as_objective import as_objective, name_of_loss
from lossscope.objectives.custom.signature import CallForm, call_form, call_parameters, without_compilation

from .batch_inputs import BatchInputs
from .observed import Observed, Result
from .random_state import unchanged_random_state

_SCALARS = ("logit_scale", "logit_bias")


@dataclass
class CalledLoss:
    """A loss that computes its similarities out of sight: W is computed on a copy of it, as for LossScope(loss).

    Raises SpecError for a loss whose parameters are none of the known forms, InputError for one of labels.
    """

    loss: Any
    objective: Objective | None = None  # None: the loss itself
    sides: Sides | None = None
    _form: CallForm = field(init=False)

    def __post_init__(self) -> None:
        target = without_compilation(self.loss)
        self._form = _form_of(target)
        if self.objective is None:
            self._own = as_objective(target)

    def call(self, loss: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result:
        """Return what the loss returns, and what it was called with."""
        return loss(*args, **kwargs), [self._observed((*args, *kwargs.values()))]

    def _observed(self, arguments: tuple[Any, ...]) -> Observed:
        sides = self.sides or IMAGE_TEXT
        first = [x.detach() for x in arguments[:2] if isinstance(x, Tensor)]
        if self._form == "S":
            inputs = BatchInputs(S=first[0])
        elif sides.is_image_text:
            inputs = BatchInputs(images=first[0], captions=first[1])
        else:
            inputs = BatchInputs(queries=first[0], documents=first[1])
        observed = inputs.observed(sides)
        return replace(observed, objective=self._objective_of(arguments[2:]))

    def _objective_of(self, scalars: tuple[Any, ...]) -> Objective | None:
        """Return the loss itself, at the scale of the step where it is called with one."""
        if self.objective is not None:
            return None
        if self._form != "features":
            return self._own
        plain = (float(x.detach() if isinstance(x, Tensor) else x) for x in scalars)
        values = {name: x for name, x in zip(_SCALARS, plain, strict=False) if hasattr(self._own, name)}
        with unchanged_random_state():
            scaled: Objective = replace(self._own, **values)  # type: ignore[type-var]
        return scaled


def _form_of(target: Any) -> CallForm:
    """Return how the loss is called. Raises SpecError where that is no known form, InputError where it is by labels."""
    parameters, name = call_parameters(target), name_of_loss(target)
    try:
        form = call_form(target, parameters, name)
    except SpecError:
        if "labels" not in parameters:
            raise
        form = "labels"
    if form in ("labels", "sentences"):
        raise InputError(
            f"{name} is called with labels and has no distance between items that could be read, as losses of several "
            "losses have none. Watch its embeddings instead: scope.watch(embeddings=..., labels=...)"
        )
    return form
