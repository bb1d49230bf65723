"""Which losses of pytorch-metric-learning compare items with class vectors, by which method, and as which objective?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

_SEVERAL = {"sub_centers": "get_cosine", "centers_per_class": "get_logits"}  # attribute -> method that gives S
_VECTORS = ("proxies", "W")  # parameters that hold one vector a class
_SCALES = ("scale", "alpha", "la", "softmax_scale")  # attributes that multiply S, or its distance
_EQUAL: Mapping[str, Callable[[Any], str]] = {
    "ArcFaceLoss": lambda loss: f"arcface:margin={loss.margin:.6g},scale={loss.scale:g}",
    "SubCenterArcFaceLoss": lambda loss: f"arcface:margin={loss.margin:.6g},scale={loss.scale:g}",
    "CosFaceLoss": lambda loss: f"cosface:margin={loss.margin:g},scale={loss.scale:g}",
    "SoftTripleLoss": lambda loss: f"cosface:margin={loss.margin:g},scale={loss.la:g}",
    "NormalizedSoftmaxLoss": lambda loss: f"ntxent:tau={loss.temperature:g}",
    "ProxyNCALoss": lambda loss: f"ntxent:tau={0.5 / loss.softmax_scale:g}",
    "ProxyAnchorLoss": lambda loss: f"proxy_anchor:alpha={loss.alpha:g},margin={loss.margin:g}",
}  # class -> objective that is the same function of S, at its usual distance


def class_similarity(loss: Any) -> str | None:
    """Return the method of a loss that computes S (items, classes); None for a loss without class vectors.

    It is `distance` for one vector a class. A loss with several centres a class has a method that joins their
    similarities: the largest of them (SubCenterArcFaceLoss), or a mean with the weights of a softmax (SoftTripleLoss).
    """
    if not isinstance(loss, nn.Module) or not hasattr(loss, "weight_regularizer"):
        return None
    for attribute, method in _SEVERAL.items():
        if hasattr(loss, attribute):
            return method
    return "distance" if any(isinstance(getattr(loss, name, None), nn.Parameter) for name in _VECTORS) else None


def class_scale(loss: Any) -> float:
    """Return |dL/dS| of an item whose weight is saturated: the factor on S, 1/tau; 1 where the loss states none.

    S of a squared distance of unit vectors is 1 − d²/2, so its factor is twice that of the distance.
    """
    scale = 1 / loss.temperature if hasattr(loss, "temperature") else 1.0
    scale = next((float(getattr(loss, name)) for name in _SCALES if hasattr(loss, name)), scale)
    return scale if loss.distance.is_inverted or loss.distance.power != 2 else 2 * scale


def equal_objective(loss: Any) -> str | None:
    """Return the spec of the objective that is a loss with class vectors; None where there is none."""
    spec = _EQUAL.get(type(loss).__name__)
    return None if spec is None else spec(loss)
