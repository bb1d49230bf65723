"""A function, class or object that computes a loss -> a class of objectives, whose fields are its plain options."""

from __future__ import annotations

import inspect
from dataclasses import field, make_dataclass
from functools import lru_cache
from types import MethodType
from typing import Any

from .signature import (
    REQUIRED,
    call_form,
    call_parameters,
    constructor_parameters,
    is_function,
    plain_options,
    unwrapped,
)
from .wrapped_loss import WrappedLoss


class _Same:
    """A key that is equal for one object only: losses need not be hashable, and equal ones may change apart."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __hash__(self) -> int:
        return hash(self.target) if isinstance(self.target, MethodType) else id(self.target)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same):
            return False
        methods = isinstance(self.target, MethodType)  # a new one is made at each access
        return bool(self.target == other.target) if methods else self.target is other.target


def wrap_loss(target: Any, name: str, with_bias: bool = False) -> type[WrappedLoss]:
    """Return a WrappedLoss class whose fields are the plain options of a function, a class or an object with __call__.

    Args:
        target: computes the loss.
        name: of the class.
        with_bias: whether a loss of features is called with its logit_bias although the parameter has a default.

    Raises SpecError when its parameters are none of the known forms and it has no attribute `lossscope_takes`
    (S, embeddings, features, labels or sentences).
    """
    return _wrap(_Same(target), name, with_bias)


@lru_cache(maxsize=64)
def _wrap(key: _Same, name: str, with_bias: bool) -> type[WrappedLoss]:
    target = unwrapped(key.target)
    call = call_parameters(target)
    form = call_form(target, call, name)
    scalars: tuple[str, ...] = ()
    call_options: tuple[str, ...] = ()
    options = plain_options(constructor_parameters(target)) if isinstance(target, type) else {}
    if form == "features":
        biased = "logit_bias" in call and (with_bias or call["logit_bias"].default is inspect.Parameter.empty)
        scalars = ("logit_scale", "logit_bias") if biased else ("logit_scale",)
        begin = {"logit_scale": 10.0, "logit_bias": -10.0} if biased else {"logit_scale": 1 / 0.07}
        options |= {key: (type(value), value) for key, value in (begin | {"learn": False}).items()}
    if is_function(target):
        plain = {key: value for key, value in plain_options(call).items() if value[1] is not REQUIRED}
        optional = {key: value for key, value in plain.items() if key not in scalars}
        call_options, options = tuple(optional), options | optional
    wrapped = make_dataclass(
        name.rpartition(":")[2],
        sorted(
            (
                (k, kind) if value is REQUIRED else (k, kind, field(default=value))
                for k, (kind, value) in options.items()
            ),
            key=len,
        ),
        bases=(WrappedLoss,),
        frozen=True,
        namespace={
            "target": staticmethod(target),  # which has no self
            "call_form": form,
            "call_options": call_options,
            "scalars": scalars,
            "__doc__": inspect.getdoc(target) or WrappedLoss.__doc__,
        },
    )
    setattr(wrapped, "__lossscope_name__", name)  # noqa: B010 - the name in its spec
    return wrapped
