"""What a plug-in of each kind must define, so that one which lacks it is refused when it is built, not when it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set
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
    "objectives": "inherit LossObjective or Gradient of lossscope.objectives.base, or be a function of a loss",
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
        "counted": "counted_weights",
        "differences": "rows_sum_to_zero",
        "learnt": "learnable",
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
TRAITS = {
    "positives": "positives",
    "directions": "directions",
    "reduction": "reduction",
    "conventions": "conventions",
    "statistics": "statistics",
    "required_info": "required_info",
    "needs": "required_info",
    "optional_info": "optional_info",
    "reads": "optional_info",
    "square": "square",
    "relative": "relative",
    "takes_terms": "takes_terms",
    "needs_warmup": "needs_warmup",
    "collapses": "needs_warmup",
    "needs_embeddings": "needs_embeddings",
    "embeddings": "needs_embeddings",
    "own_unit": "own_unit",
    "estimates_labels": "estimates_labels",
}
"""Former attribute of an objective -> field of its `traits`; an error names the line to type in a plug-in."""


def require_current_names(kind: str, cls: type[Any], name: str) -> type[Any]:
    """Return a plug-in's class. Raises SpecError when it defines an attribute under its former name, or a trait."""
    options = {item.name for item in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    stated: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        stated |= {} if base.__module__.startswith("lossscope.") else vars(base)
    for attribute in sorted(RENAMED.get(kind, {}).keys() & stated.keys() - options):
        raise SpecError(f"{name} must define {RENAMED[kind][attribute]}; it defines {attribute}, its former name")
    if kind == "objectives":
        _require_traits(cls, stated, options, name)
    return cls


def _require_traits(cls: type[Any], attributes: Mapping[str, Any], options: Set[str], name: str) -> None:
    """Raise SpecError with the line to type when an objective defines a trait outside of its `traits`.

    Args:
        cls: the class of the objective.
        attributes: what it and its bases outside of lossscope define.
        options: its fields; one that has the name of a trait was read as the trait, so it is refused, too.
        name: of the plug-in, for the message.
    """
    defined = attributes.keys() - options | {option for option in options if option in TRAITS.values()}
    former = [attribute for attribute in TRAITS if attribute in defined]
    if not former:
        return
    traits = getattr(cls, "traits", None)
    stated = dataclasses.fields(traits) if dataclasses.is_dataclass(traits) else ()
    values = {item.name: getattr(traits, item.name) for item in stated if getattr(traits, item.name) != item.default}
    values |= {TRAITS[attribute]: ... if attribute in options else attributes[attribute] for attribute in former}
    written = {trait: _as_literal(value) for trait, value in values.items()}
    call = f"Traits({', '.join(f'{trait}={text}' for trait, text in written.items())})"
    line = f"a property `traits` that returns {call}" if "..." in written.values() else f"the line `traits = {call}`"
    raise SpecError(
        f"{name} must have {line}, with Traits of lossscope.objectives.base; it defines {', '.join(former)}, which "
        "nothing reads any more"
    )


def _as_literal(value: object) -> str:
    """Return a plain value as it is typed; `...` for what is computed."""
    return repr(value).replace("'", '"') if isinstance(value, str | bool | int | float | tuple) else "..."


def require_members(kind: str, built: object, name: str) -> None:
    """Raise SpecError when the object of a plug-in lacks an attribute that its kind must have.

    Args:
        kind: of entries, as in `lossscope.registry.KINDS`.
        built: the object.
        name: of the plug-in, for the message.
    """
    missing = [required for required in REQUIRED.get(kind, ()) if not hasattr(built, required)]
    if missing:
        singular = "data set" if kind == "datasets" else kind.removesuffix("s")
        raise SpecError(f"{name} is no {singular}: it must {BASES[kind]}; it lacks {', '.join(missing)}")
