"""How a user's loss wants to be called, read from the names of its parameters; and which of them a spec can give."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import Any, Literal, get_args

from torch import nn

from lossscope.errors import SpecError

Takes = Literal["S", "embeddings", "features", "labels", "sentences"]
FORMS: Mapping[Takes, str] = {
    "S": "f(S)",
    "embeddings": "f(image_emb, text_emb)",
    "features": "f(image_features, text_features, logit_scale[, logit_bias])",
    "labels": "f(embeddings, labels, ref_emb=..., ref_labels=...)",
    "sentences": "f(sentence_features, labels)",
}
_PLAIN = (bool, int, float, str)
REQUIRED = object()


def call_of(target: Any) -> Mapping[str, inspect.Parameter]:
    """Parameters of the call, self left out."""
    if inspect.isroutine(target):
        return inspect.signature(target).parameters
    method = target.forward if isinstance(target, nn.Module) or _is_module(target) else target.__call__
    found = dict(inspect.signature(method).parameters)
    found.pop("self", None)
    return found


def _is_module(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, nn.Module)


def form_of(target: Any, call: Mapping[str, inspect.Parameter], name: str) -> Takes:
    told = getattr(target, "lossscope_takes", None)
    if told is not None:
        if told not in get_args(Takes):
            raise SpecError(f"lossscope_takes must be one of {', '.join(get_args(Takes))}; got {told!r}")
        return typing.cast(Takes, told)
    needed = [
        p.name for p in call.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if "sentence_features" in call:
        return "sentences"
    if "ref_emb" in call and "labels" in call:
        return "labels"
    if "logit_scale" in call:
        return "features"
    if len(needed) == 1:
        return "S"
    if len(needed) == 2 and "labels" not in needed:
        return "embeddings"
    raise SpecError(
        f"{name} must be called as one of {'; '.join(FORMS.values())}; it takes ({', '.join(call)}). "
        "Say which with an attribute lossscope_takes = 'S', 'embeddings', 'features', 'labels' or 'sentences'"
    )


def options_of(parameters: Mapping[str, inspect.Parameter]) -> dict[str, tuple[Any, Any]]:
    """Name -> (type, default) of the parameters that a spec can give: plain defaults, and those that must be given."""
    found: dict[str, tuple[Any, Any]] = {}
    for p in parameters.values():
        if isinstance(p.default, _PLAIN):
            found[p.name] = (type(p.default), p.default)
        elif p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD and p.name != "model":
            found[p.name] = (p.annotation if p.annotation in _PLAIN else int | float | str, REQUIRED)
    return found
