"""How to call a user's loss, read from the names of its parameters, and which options a spec can give."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import Any, Literal, get_args

from torch import nn

from lossscope.errors import SpecError

CallForm = Literal["S", "embeddings", "features", "labels", "sentences"]
FORMS: Mapping[CallForm, str] = {
    "S": "f(S)",
    "embeddings": "f(image_emb, text_emb)",
    "features": "f(image_features, text_features, logit_scale[, logit_bias])",
    "labels": "f(embeddings, labels, ref_emb=..., ref_labels=...)",
    "sentences": "f(sentence_features, labels)",
}
_VECTORS = ("z", "zs", "h", "x", "emb", "embs", "embedding", "embeddings", "feature", "features", "feats", "vectors")
CALL_HINTS: Mapping[CallForm, str] = {
    "labels": (
        ". It is called with pairs, as loss(images, labels, ref_emb=captions, ref_labels=labels); one that takes no "
        "ref_emb cannot be counted"
    ),
    "sentences": (
        ". It is called with the sentence embeddings of pairs, without a model or labels; one that needs labels "
        "(CoSENTLoss), a third column (TripletLoss), a second model (GISTEmbedLoss) or chunks of its own (Cached...) "
        "cannot be counted. Take the plain one with the same scale, such as MultipleNegativesRankingLoss, which "
        "ntxent:tau=1/scale is too"
    ),
}
_PLAIN = (bool, int, float, str)
REQUIRED = object()  # default of an option that must be given


def call_parameters(target: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a call of the target, without self."""
    if inspect.isroutine(target):
        return inspect.signature(target).parameters
    method = target.forward if isinstance(target, nn.Module) or _is_module(target) else target.__call__
    parameters = inspect.signature(method).parameters
    return _without_first(parameters) if isinstance(target, type) else parameters


def constructor_parameters(cls: type[Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a class, without self; those of __init__ where __new__ takes anything."""
    parameters = inspect.signature(cls).parameters
    if any(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return parameters
    return _without_first(inspect.signature(cls.__init__).parameters)


def _without_first(parameters: Mapping[str, inspect.Parameter]) -> Mapping[str, inspect.Parameter]:
    """Leave out `self`, whatever it is called."""
    return dict(list(parameters.items())[1:])


def _is_module(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, nn.Module)


def call_form(target: Any, call: Mapping[str, inspect.Parameter], name: str) -> CallForm:
    """Return which of FORMS the call is: `lossscope_takes` of the target, or what its parameters are named.

    Raises SpecError where it is none of them.
    """
    declared = getattr(target, "lossscope_takes", None)
    if declared is not None:
        if declared not in get_args(CallForm):
            raise SpecError(f"lossscope_takes must be one of {', '.join(get_args(CallForm))}; got {declared!r}")
        return typing.cast(CallForm, declared)
    required = [
        p.name for p in call.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if "sentence_features" in call:
        return "sentences"
    if "ref_emb" in call and "labels" in call:
        return "labels"
    if "logit_scale" in call:
        return "features"
    if len(required) == 1 and required[0].lower().strip("_").rstrip("0123456789") in _VECTORS:
        raise SpecError(
            f"{name} takes one argument, {required[0]}, which may be S or the embeddings of all views. Say which: "
            f"{name.rpartition(':')[2]}.lossscope_takes = 'S' where it is S, (b, b), pair i on the diagonal. A loss on "
            "all views in one matrix, as SimCLR's, is not supported"
        )
    if len(required) == 1:
        return "S"
    if len(required) == 2 and "labels" not in required:
        return "embeddings"
    raise SpecError(
        f"{name} must be called as one of {'; '.join(FORMS.values())}; it takes ({', '.join(call)}). "
        "Say which with an attribute lossscope_takes = 'S', 'embeddings', 'features', 'labels' or 'sentences'"
    )


def plain_options(parameters: Mapping[str, inspect.Parameter]) -> dict[str, tuple[Any, Any]]:
    """Return name -> (type, default) of the parameters that a spec can give: plain defaults and required ones."""
    options: dict[str, tuple[Any, Any]] = {}
    for p in parameters.values():
        if isinstance(p.default, _PLAIN):
            options[p.name] = (type(p.default), p.default)
        elif p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD and p.name != "model":
            options[p.name] = (p.annotation if p.annotation in _PLAIN else int | float | str, REQUIRED)
    return options
