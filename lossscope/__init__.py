"""lossscope: what a contrastive or metric-learning loss really does.

A source yields similarities; an objective turns them into gradient weights W = dL/dS; probes read W; frames carry
the numbers; plots, tables and reports draw frames. The public names below are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Loss",
    "LossScope",
    "Mask",
    "both",
    "diagnose",
    "doctor",
    "load",
    "objective",
    "pair_mask",
    "per_query",
    "probe",
    "suspects",
    "weight_field",
]

_MODULES = {
    "Loss": "training.loss_module",
    "LossScope": "live.monitor",
    "Mask": "core.similarity",
    "both": "core.weights",
    "diagnose": "diagnosis",
    "pair_mask": "core.similarity",
    "per_query": "retrieval.per_query",
    "suspects": "core.suspects",
}

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

    from .core.embedded import SplitEmbeddings
    from .core.similarity import Mask, pair_mask
    from .core.suspects import suspects
    from .core.weights import both
    from .diagnosis import diagnose
    from .doctor.examination.examine import examine as doctor
    from .live.monitor import LossScope
    from .objectives.custom.as_objective import ObjectiveLike
    from .retrieval.per_query import per_query
    from .training.loss_module import Loss


def objective(spec: Any) -> Any:
    """Return the objective of a spec, or of a function or module that computes a loss.

    ``objective("ntxent:tau=0.1")(S, mask).W`` is dL/dS.
    """
    from .io.trusted_code import trust
    from .objectives.custom.as_objective import as_objective

    with trust([spec] if isinstance(spec, str) else []):
        return as_objective(spec)


def probe(spec: str) -> Any:
    """Return the probe of a spec: ``probe("cocos:eps=0.01")``."""
    from .io.trusted_code import trust
    from .registry import build

    with trust([spec]):
        return build("probes", spec)


def load(path: Path | str, **options: Any) -> SplitEmbeddings:
    """Return the embeddings of a source: ``load("ckpt.pt", split="val")``.

    Args:
        path: a checkpoint, run folder, released file, Hugging Face folder, or dump.
        options: fields of ``lossscope.core.request.Request``; a Python file that the source names is imported only
            with ``trust_code=True``.

    Raises:
        InputError: no source of a known kind, a damaged one, or an unknown option.
    """
    from .io.trusted_code import trust
    from .sources.base import load as load_source

    with trust([options.get("data")]):
        return load_source(path, **options)


def weight_field(
    objective: ObjectiveLike, low: float = -1.0, high: float = 1.0, points: int | None = None
) -> DataFrame:
    """Return the weights of a two-candidate query for every pair of similarities (s+, s-).

    Args:
        objective: a spec, an objective, or a function or module that computes a loss.
        low: smallest similarity.
        high: largest similarity.
        points: along each side; None: what the objective needs.

    Returns:
        A frame with the columns s_pos, s_neg, w_pos, w_neg and objective.
    """
    from .engine.weight_fields import weight_field as compute
    from .io.trusted_code import trust

    with trust([objective] if isinstance(objective, str) else []):
        return compute(objective, low, high, points)


def __getattr__(name: str) -> Any:
    if name == "doctor":
        from importlib import import_module

        return import_module(".doctor", __name__)  # the package of findings, which is also the function
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("lossscope")
    raise AttributeError(f"module 'lossscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
