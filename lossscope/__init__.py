"""lossscope: what a contrastive or metric-learning loss really does.

A source yields similarities; an objective turns them into gradient weights W = dL/dS; probes read W; frames carry
the numbers; plots, tables and reports draw frames. The public names below are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "LossScope",
    "Mask",
    "both",
    "diagnose",
    "load",
    "objective",
    "pair_mask",
    "per_query",
    "probe",
    "weight_field",
]

_MODULES = {
    "LossScope": "live.monitor",
    "Mask": "core.similarity",
    "both": "core.weights",
    "diagnose": "diagnosis",
    "load": "sources.base",
    "pair_mask": "core.similarity",
    "per_query": "retrieval.per_query",
    "weight_field": "engine.weight_fields",
}

if TYPE_CHECKING:
    from .core.similarity import Mask, pair_mask
    from .core.weights import both
    from .diagnosis import diagnose
    from .engine.weight_fields import weight_field
    from .live.monitor import LossScope
    from .retrieval.per_query import per_query
    from .sources.base import load


def objective(spec: Any) -> Any:
    """Return the objective of a spec, or of a function or module that computes a loss.

    ``objective("ntxent:tau=0.1")(S, mask).W`` is dL/dS.
    """
    from .objectives.custom.as_objective import as_objective

    return as_objective(spec)


def probe(spec: str) -> Any:
    """Return the probe of a spec: ``probe("cocos:eps=0.01")``."""
    from .registry import build

    return build("probes", spec)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("lossscope")
    raise AttributeError(f"module 'lossscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
