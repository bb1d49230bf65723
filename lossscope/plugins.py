"""What a plug-in of each kind must define, so that one which lacks it is refused when it is built, not when it runs."""

from __future__ import annotations

import dataclasses
from typing import Any

from .errors import SpecError

REQUIRED = {
    "objectives": ("traits", "coupled", "counts", "counted_weights", "__call__"),
    "probes": ("axis", "reads", "needs_objective", "tile", "statistics"),
    "datasets": ("splits", "split"),
    "features": ("identity", "open"),
    "sources": ("accepts", "read"),
    "launchers": ("at_once", "start"),
    "masks": ("needs", "hidden"),
    "findings": ("severity", "examine"),
    "signals": ("group", "because", "values", "name"),
    "trainers": ("takes_negatives", "needs_negatives", "is_chunked", "is_accumulated", "require", "build"),
}
"""Kind -> attributes that its entries must have; encoders must inherit EncoderSpec, which the encoders check."""
BASES = {
    "objectives": "inherit Loss or Gradient of lossscope.objectives.base, or be a function of a loss",
    "probes": "inherit Probe of lossscope.probes.base",
    "datasets": "have what lossscope.datasets.base.Dataset says",
    "features": "have what lossscope.datasets.features.base.Backbone says",
    "sources": "have what lossscope.sources.base.Source says",
    "launchers": "have what lossscope.studies.launchers.base.Launcher says",
    "masks": "have what lossscope.core.masks.base.NegativeMask says",
    "findings": "inherit Check of lossscope.doctor.base",
    "signals": "inherit Signal of lossscope.audit.base, and say `because` what a high value says",
    "trainers": "have what lossscope.conformance.trainers.base.Trainer says, or be a step(queries, candidates)",
}
"""Kind -> what an entry must do, for messages."""
RENAMED = {
    "objectives": {
        "collapses": "needs_warmup",
        "counted": "counted_weights",
        "differences": "rows_sum_to_zero",
        "embeddings": "needs_embeddings",
        "learnt": "learnable",
        "needs": "required_info",
        "reads": "optional_info",
        "stated": "closed_form",
        "tiled": "counting_rule",
        "weighed": "differentiable_weights",
    },
    "probes": {"weighs": "needs_objective"},
    "encoders": {
        "kept": "stored_files",
        "opened": "from_released",
        "prepared": "prepare",
        "rebuilt": "rebuild",
        "tokens": "build_tokeniser",
        "wordless": "reads_word_vectors",
    },
}
"""Kind -> former name of an attribute of its entries -> current name; a plug-in with a former name is refused."""


def require_current_names(kind: str, cls: type[Any], name: str) -> type[Any]:
    """Return a plug-in's class. Raises SpecError when it defines an attribute under its former name."""
    options = {item.name for item in dataclasses.fields(cls)}
    for base in cls.__mro__:
        former = () if base.__module__.startswith("lossscope.") else RENAMED.get(kind, {}).keys() & vars(base).keys()
        for attribute in sorted(set(former) - options):
            raise SpecError(f"{name} must define {RENAMED[kind][attribute]}; it defines {attribute}, its former name")
    return cls


def require_members(kind: str, built: object, name: str) -> None:
    """Raise SpecError when the object of a plug-in lacks an attribute that its kind must have.

    Args:
        kind: of entries, as in `lossscope.registry.KINDS`.
        built: the object.
        name: of the plug-in, for the message.
    """
    missing = [one for one in REQUIRED.get(kind, ()) if not hasattr(built, one)]
    if missing:
        singular = "data set" if kind == "datasets" else kind.removesuffix("s")
        raise SpecError(f"{name} is no {singular}: it must {BASES[kind]}; it lacks {', '.join(missing)}")
