"""How to call a user's loss, read from the names of its parameters, and which options a spec can give."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import nn

from lossscope.errors import SpecError

from .call_advice import LABELS, MATRICES, POSITIVES, VECTORS, plain_name, wrapper_for

CallForm = Literal["S", "embeddings", "features", "labels", "sentences", "views", "classes", "masked"]
FORMS: Mapping[CallForm, str] = {
    "S": "f(S)",
    "embeddings": "f(image_emb, text_emb)",
    "features": "f(image_features, text_features, logit_scale[, logit_bias])",
    "labels": "f(embeddings, labels, ref_emb=..., ref_labels=...)",
    "sentences": "f(sentence_features, labels)",
    "views": "f(features), (b, 2, d)",
    "classes": "f(embeddings, labels)",
    "masked": "f(S, mask)",
}
ONE_SET_FORMS: tuple[CallForm, ...] = ("views", "classes")  # that are called with all items of a batch
_PLAIN = (bool, int, float, str)
REQUIRED = object()  # default of an option that must be given
Parameters = Mapping[str, inspect.Parameter]


def unwrapped(target: Any) -> Any:
    """Return the function or module that torch.compile or `LossScope.wrap` was given: trial batches run on it."""
    if isinstance(target, partial):
        inner = unwrapped(target.func)
        return target if inner is target.func else partial(inner, *target.args, **target.keywords)
    if hasattr(type(target), "lossscope_watch"):
        return unwrapped(target.lossscope_watch.given)
    if isinstance(target, nn.Module):
        return getattr(target, "_orig_mod", target)
    return getattr(target, "_torchdynamo_orig_callable", target)


def is_function(target: Any) -> bool:
    """Whether it is a function, whose own defaults are options; a partial of one is too."""
    if isinstance(target, partial):
        return is_function(target.func)
    return inspect.isroutine(target) or isinstance(target, torch.jit.ScriptFunction)


def call_parameters(target: Any) -> Parameters:
    """Return the parameters of a call of the target, without self. Raises SpecError where they cannot be read."""
    if isinstance(target, partial):
        return _parameters_left(target)
    method = target
    if isinstance(target, nn.Module) or _is_module(target):
        method = target.forward
    elif not inspect.isroutine(target) and not isinstance(target, torch.jit.ScriptFunction):
        method = target.__call__
    if hasattr(method, "schema"):
        return _of_schema(method.schema)
    try:
        parameters = inspect.signature(method).parameters
    except (ValueError, TypeError) as error:
        raise SpecError(
            f"a loss must have parameters that can be read; {error}. Write a function that calls it: "
            "`def loss(S): return your_loss(S)`"
        ) from error
    return _without_first(parameters) if isinstance(target, type) else parameters


def _parameters_left(target: partial[Any]) -> Parameters:
    """Return the parameters that a partial has not fixed, and those that it has by name, with their values."""

    def inner(*_: Any, **__: Any) -> None:
        """Has the signature of the function inside."""

    inner.__signature__ = inspect.Signature(list(call_parameters(target.func).values()))  # type: ignore[attr-defined]
    return inspect.signature(partial(inner, *target.args, **target.keywords)).parameters


def _of_schema(schema: Any) -> Parameters:
    """Return the parameters of a function that torch.jit compiled."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return {
        argument.name: inspect.Parameter(
            argument.name,
            kind,
            default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
        )
        for argument in schema.arguments
        if argument.name != "self"
    }


def constructor_parameters(cls: type[Any]) -> Parameters:
    """Return the parameters of a class, without self; those of __init__ where __new__ takes anything."""
    parameters = inspect.signature(cls).parameters
    if any(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return parameters
    return _without_first(inspect.signature(cls.__init__).parameters)


def _without_first(parameters: Parameters) -> Parameters:
    """Leave out `self`, whatever it is called."""
    return dict(list(parameters.items())[1:])


def _is_module(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, nn.Module)


def declaration(target: Any, attribute: str) -> Any:
    """Return what a loss, or the function inside a partial, says of itself in an attribute; None where it has none."""
    inner = declaration(target.func, attribute) if isinstance(target, partial) else None
    return getattr(target, attribute, inner)


def call_form(target: Any, call: Parameters, name: str) -> CallForm:
    """Return which of FORMS the call is: `lossscope_takes` of the target, or what its parameters are named.

    Raises SpecError where it is none of them.
    """
    declared = declaration(target, "lossscope_takes")
    if declared is not None:
        if declared not in get_args(CallForm):
            raise SpecError(f"lossscope_takes must be one of {', '.join(get_args(CallForm))}; got {declared!r}")
        return typing.cast(CallForm, declared)
    required, callee = _required(call), _callee(target, name)
    if "sentence_features" in call:
        return "sentences"
    if "ref_emb" in call and "labels" in call:
        return "labels"
    if "logit_scale" in call:
        return "features"
    if len(required) == 1 and plain_name(required[0]) in VECTORS:
        return "views"
    if len(required) == 2 and plain_name(required[0]) in VECTORS and plain_name(required[1]) in LABELS:
        return "classes"
    if len(required) == 2 and plain_name(required[0]) in MATRICES and plain_name(required[1]) in POSITIVES:
        return "masked"
    advice = wrapper_for(required, callee)
    if advice is not None:
        raise SpecError(f"{name} takes ({shown(call)}): {advice}")
    if len(required) == 1:
        return "S"
    if len(required) == 2 and "labels" not in required:
        return "embeddings"
    raise SpecError(
        f"{name} must be called as one of {'; '.join(FORMS.values())}; it takes ({shown(call)}). "
        f"Say which with an attribute lossscope_takes = {', '.join(map(repr, FORMS))}, or give a function that calls "
        f"it, `def loss(S): return {_call_with_s(callee, call)}`"
    )


def _required(call: Parameters) -> list[str]:
    """Return the names of the positional parameters without a default; else of those whose default is None.

    Of the latter only the first where that is a matrix of similarities by its name: `f(S=None, mask=None)`.
    """
    positional = [p for p in call.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p.name for p in positional if p.default is p.empty]
    optional = [p.name for p in positional if p.default is None]
    if required or not optional:
        return required
    return optional[:1] if plain_name(optional[0]) in MATRICES else optional


def shown(call: Parameters) -> str:
    """Return the names of parameters as they are written: `S, *args, **kwargs`."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(stars.get(p.kind, "") + p.name for p in call.values())


def _callee(target: Any, name: str) -> str:
    """Return how the user writes the loss that is called: its name, or `criterion` for an object without one."""
    short = name.rpartition(":")[2]
    if isinstance(target, type):
        return f"{short}()"
    return short if is_function(target) or short != name else "criterion"


def _call_with_s(name: str, call: Parameters) -> str:
    """`f(S)`, or `f(name=S)` where the one parameter is given by name only."""
    by_name = [p.name for p in call.values() if p.kind == p.KEYWORD_ONLY and p.default is p.empty]
    return f"{name}({by_name[0]}=S)" if len(by_name) == 1 and not _required(call) else f"{name}(S)"


def plain_options(parameters: Parameters) -> dict[str, tuple[Any, Any]]:
    """Return name -> (type, default) of the parameters that a spec can give: plain defaults and required ones."""
    options: dict[str, tuple[Any, Any]] = {}
    for p in parameters.values():
        if isinstance(p.default, _PLAIN):
            options[p.name] = (type(p.default), p.default)
        elif p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD and p.name != "model":
            options[p.name] = (p.annotation if p.annotation in _PLAIN else int | float | str, REQUIRED)
    return options
