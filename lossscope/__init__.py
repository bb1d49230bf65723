"""lossscope: what a contrastive or metric-learning loss really does.

A source yields similarities; an objective turns them into gradient weights W = dL/dS; probes read W; frames carry
the numbers; plots, tables and reports draw frames. The public names below are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["LossScope", "diagnose", "load", "objective", "per_query", "probe", "weight_field"]

_PLACES = {
    "LossScope": "watch",
    "diagnose": "diagnosis",
    "load": "sources.base",
    "per_query": "queries",
    "weight_field": "diagram",
}

if TYPE_CHECKING:
    from .diagnosis import diagnose
    from .engine.weight_fields import weight_field
    from .live.monitor import LossScope
    from .retrieval.per_query import per_query
    from .sources.base import load


def objective(spec: str) -> Any:
    """The objective of a spec: ``objective("ntxent:tau=0.1")(S, mask).W``."""
    from .registry import build

    return build("objectives", spec)


def probe(spec: str) -> Any:
    """The probe of a spec: ``probe("cocos:eps=0.01")``."""
    from .registry import build

    return build("probes", spec)


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f".{_PLACES[name]}", __name__), name)
    raise AttributeError(f"module 'lossscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
