"""A function, class or object that computes a loss -> a class of objectives, whose fields are its plain options."""

from __future__ import annotations

import inspect
from dataclasses import field, make_dataclass
from functools import lru_cache
from typing import Any

from .signature import REQUIRED, call_form, call_parameters, constructor_parameters, plain_options
from .wrapped_loss import WrappedLoss


@lru_cache(maxsize=64)
def wrap_loss(target: Any, name: str) -> type[WrappedLoss]:
    """Return a WrappedLoss class whose fields are the plain options of a function, a class or an object with __call__.

    Raises SpecError when its parameters are none of the known forms and it has no attribute `lossscope_takes`
    (S, embeddings, features, labels or sentences).
    """
    call = call_parameters(target)
    form = call_form(target, call, name)
    scalars: tuple[str, ...] = ()
    call_options: tuple[str, ...] = ()
    options = plain_options(constructor_parameters(target)) if isinstance(target, type) else {}
    if form == "features":
        biased = "logit_bias" in call and call["logit_bias"].default is inspect.Parameter.empty
        scalars = ("logit_scale", "logit_bias") if biased else ("logit_scale",)
        begin = {"logit_scale": 10.0, "logit_bias": -10.0} if biased else {"logit_scale": 1 / 0.07}
        options |= {key: (type(value), value) for key, value in (begin | {"learn": False}).items()}
    if inspect.isroutine(target):
        optional = {key: value for key, value in plain_options(call).items() if value[1] is not REQUIRED}
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
            "target": staticmethod(target) if inspect.isroutine(target) else target,
            "call_form": form,
            "call_options": call_options,
            "scalars": scalars,
            "__doc__": inspect.getdoc(target) or WrappedLoss.__doc__,
        },
    )
    setattr(wrapped, "__lossscope_name__", name)  # noqa: B010 - the name in its spec
    return wrapped
