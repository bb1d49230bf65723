"""A spec, an objective, or any function or module that computes a loss -> an objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, cast

from lossscope.errors import InputError, SpecError
from lossscope.plugins import require_current_names
from lossscope.registry import build

from ..base import Objective

ObjectiveLike = str | Objective | Callable[..., Any]  # what `as_objective` takes


def as_objective(thing: ObjectiveLike) -> Objective:
    """Return the objective of a spec or of a loss; an objective is returned as it is.

    Args:
        thing: a spec; an objective; or a loss: a function, an object with __call__ (`nn.Module`), or a class of these
            that can be built without arguments.

    Raises:
        InputError: anything else.
        SpecError: a spec that is none, an objective with former attributes, or a loss whose parameters are none of the
            known forms.
    """
    if isinstance(thing, str):
        return cast(Objective, build("objectives", thing))
    if isinstance(thing, type) and Objective in thing.__mro__:
        thing = thing()
    if Objective in type(thing).__mro__:
        from .wrapped_loss import WrappedLoss

        if not isinstance(thing, WrappedLoss):  # whose fields are those of the user's loss
            require_current_names("objectives", type(thing), type(thing).__name__)
        return cast(Objective, thing)
    if not callable(thing):
        raise InputError(
            'objective must be a spec such as "ntxent:tau=0.05", an objective, or a function or module that computes '
            f"a loss; got {type(thing).__name__}"
        )
    from .signature import unwrapped
    from .wrap_loss import wrap_loss

    thing = unwrapped(thing)
    name = name_of_loss(thing)
    wrapped = wrap_loss(cast(Any, thing), name)
    missing = [field.name for field in fields(wrapped) if field.default is MISSING and field.default_factory is MISSING]
    if missing:
        raise SpecError(f"{name} needs {', '.join(missing)}; give the loss that is built with them, {name}(...)")
    return wrapped()


def name_of_loss(thing: Any) -> str:
    """Return what a loss is called in labels: the name of its function or class."""
    if isinstance(thing, partial):
        return name_of_loss(thing.func)
    return str(getattr(thing, "__name__", type(thing).__name__)).strip("<>")
