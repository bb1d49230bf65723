"""A function, class or object of the user's own file -> a class of trainers."""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from typing import Any, cast

from lossscope.errors import SpecError
from lossscope.objectives.custom.signature import (
    REQUIRED,
    call_parameters,
    constructor_parameters,
    plain_options,
    shown,
)

from .trainers.base import Step

OPTIONAL = ("negatives", "chunk_size", "micro_batches")  # parameters that a step may have beside its two sides


@dataclasses.dataclass(frozen=True)
class UserStep:
    """A trainer of the user's own file; `wrap_step` makes a class of it for each."""

    @property
    def takes_negatives(self) -> bool:
        """Whether the step has a parameter `negatives`."""
        return "negatives" in call_parameters(self._target)

    @property
    def needs_negatives(self) -> bool:
        """Whether this parameter has no default."""
        parameter = call_parameters(self._target).get("negatives")
        return parameter is not None and parameter.default is parameter.empty

    @property
    def is_chunked(self) -> bool:
        """Whether the step has a parameter `chunk_size`."""
        return "chunk_size" in call_parameters(self._target)

    @property
    def is_accumulated(self) -> bool:
        """Whether the step has a parameter `micro_batches`."""
        return "micro_batches" in call_parameters(self._target)

    def require(self) -> None:
        """Nothing: a step may need the group of processes to be built."""

    def build(self, chunk_size: int | None = None, micro_batches: int | None = None) -> Step:
        """Return a new object of a class, or the function itself, with what is given of these options.

        Args:
            chunk_size: rows of a chunk; None: the option is not passed.
            micro_batches: into which the share is cut; None: the option is not passed.
        """
        step = self._target
        if isinstance(step, type):
            step = step(**{item.name: getattr(self, item.name) for item in dataclasses.fields(self)})
        given = {"chunk_size": chunk_size, "micro_batches": micro_batches}
        given = {key: value for key, value in given.items() if value is not None}
        return cast(Step, partial(step, **given) if given else step)

    @property
    def _target(self) -> Any:
        return vars(type(self))["target"].__func__


def wrap_step(target: Any, name: str) -> type[UserStep]:
    """Return the trainer class of a step; its fields are the plain options of a class of steps.

    Args:
        target: `step(queries, candidates)`, and any of `negatives=`, `chunk_size=` and `micro_batches=`; or a class of
            such objects, one of which is made in every process, inside its process group.
        name: of the spec.

    Raises:
        SpecError: parameters that are none of these.
    """
    parameters = call_parameters(target)
    free = [
        key
        for key, parameter in parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and key not in OPTIONAL
    ]
    required = [key for key in free if parameters[key].default is inspect.Parameter.empty]
    if len(free) < 2 or len(required) > 2:
        raise SpecError(
            f"{name} must be called as step(queries, candidates), and may take {', '.join(OPTIONAL)}; it takes "
            f"({shown(parameters)}). Write a function around it that takes these"
        )
    options = plain_options(constructor_parameters(target)) if isinstance(target, type) else {}
    fields = [
        (key, kind) if value is REQUIRED else (key, kind, dataclasses.field(default=value))
        for key, (kind, value) in sorted(options.items(), key=lambda item: item[1][1] is not REQUIRED)
    ]
    wrapped = dataclasses.make_dataclass(
        name.rpartition(":")[2],
        fields,
        bases=(UserStep,),
        frozen=True,
        namespace={"target": staticmethod(target), "__doc__": inspect.getdoc(target) or UserStep.__doc__},
    )
    setattr(wrapped, "__lossscope_name__", name)  # noqa: B010 - the name in its spec
    return wrapped
