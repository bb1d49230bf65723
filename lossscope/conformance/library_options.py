"""Keyword arguments of a library's class in the spec of a trainer, and errors for a library that is not there."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from lossscope.errors import InputError, SpecError


def load_class(module: str, name: str, library: str, install: str = "") -> Any:
    """Return a class of a library.

    Args:
        module: that has it.
        name: of the class.
        library: its name, for messages.
        install: what pip installs, where that is not the name.

    Raises:
        InputError: the library cannot be imported.
        SpecError: it has no such class.
    """
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{library} must be installed to check its losses; {error}. pip install {install or library}"
        ) from error
    if not isinstance(getattr(loaded, name, None), type):
        known = [loss for loss in dir(loaded) if loss.endswith("Loss")]
        raise SpecError(f"loss must be a class of {module}, such as {', '.join(known)}; got {name!r}")
    return getattr(loaded, name)


def keyword_arguments(text: str) -> dict[str, Any]:
    """Return the arguments that `options` of a spec names: words, numbers, true, false, none, and a+b for several.

    Raises SpecError unless each is KEY=VALUE.

    >>> keyword_arguments("scale=50 directions=query_to_doc+doc_to_query")
    {'scale': 50, 'directions': ('query_to_doc', 'doc_to_query')}
    """
    given: dict[str, Any] = {}
    for piece in text.split():
        key, equals, value = piece.partition("=")
        if not equals or not key.isidentifier():
            raise SpecError(f"options must be KEY=VALUE, separated by spaces; got {piece!r} in {text!r}")
        several = tuple(_value(part) for part in value.split("+"))
        given[key] = several if len(several) > 1 else several[0]
    return given


def _value(text: str) -> bool | int | float | str | None:
    known = {"true": True, "false": False, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def construct(target: Any, required: Mapping[str, Any], optional: Mapping[str, Any]) -> Any:
    """Build an object with the arguments that are required, and those of the optional ones that it takes.

    Args:
        target: its class.
        required: arguments that it must take; None is left out.
        optional: arguments that are left out where it does not take them.

    Raises:
        SpecError: an argument that it does not take, or one that it refuses.
    """
    takes = inspect.signature(target.__init__).parameters
    given = {key: value for key, value in required.items() if value is not None}
    anything = any(p.kind is p.VAR_KEYWORD for p in takes.values())
    unknown = [key for key in given if key not in takes and not anything]
    if unknown:
        names = [name for name in takes if name != "self"]
        raise SpecError(f"{target.__name__} must be given some of {', '.join(names)}; got {', '.join(unknown)}")
    try:
        return target(**given, **{key: value for key, value in optional.items() if key in takes and key not in given})
    except (TypeError, ValueError) as error:
        raise SpecError(f"{target.__name__} cannot be built of {', '.join(given)}; {error}") from error
