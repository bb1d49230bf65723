"""Which argument of a call is which parameter, however the call was written."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


def bound_arguments(
    parameters: Mapping[str, inspect.Parameter], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return parameter -> argument of those that a call gives, in the order in which a function states its parameters.

    Those of `*args` are named by their numbers. Raises TypeError for a call that the function would refuse.
    """
    bound = inspect.Signature(list(parameters.values())).bind(*args, **kwargs)
    arguments: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            arguments |= {f"{name}[{index}]": one for index, one in enumerate(value)}
        elif kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= value
        else:
            arguments[name] = value
    return arguments
