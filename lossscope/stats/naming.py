"""Which of several models are seeds of one system, and what is each system called?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lossscope.errors import InputError

UNKNOWN = "unknown"
_FILES = ("init", "info", "offline")  # differ between seeds where each has its own first stage


@dataclass(frozen=True)
class TrainedModel:
    """A model without its numbers."""

    name: str
    seed: int | None = None  # None: unknown
    choices: Mapping[str, str] = field(default_factory=dict)  # of its training, as they are printed; empty: unknown


def name_systems(models: Sequence[TrainedModel], data: str | None = None) -> list[dict[str, Any]]:
    """Return run, data, encoder, trained and seed of each model, the columns that `compare` wants beside its queries.

    Models whose choices are the same are seeds of one system. The files that a training begins with (init, info,
    offline) count as a difference only where two runs of one seed could not be told apart otherwise. `objective_label` is
    the objective, then every other choice in which the systems differ; a model without choices is a system of its own
    name, of unknown seed.

    Args:
        models: in the order in which the rows are wanted.
        data: what all of them are tested on, where that is not what they were trained on.

    Raises:
        InputError: a model is there twice, or models were made for different data.
    """
    twice = [name for name, times in Counter(model.name for model in models).items() if times > 1]
    if twice:
        raise InputError(f"runs must be given once each; got {twice[0]} several times")
    tested = _common_data(models, data)
    choices = [_without(model, _FILES) for model in models]
    runs = Counter((tuple(own.items()), model.seed) for own, model in zip(choices, models, strict=True) if own)
    if max(runs.values(), default=1) > 1:
        choices = [_without(model, ()) for model in models]
    known = [own for own in choices if own]
    names = dict.fromkeys(name for own in known for name in own)
    differing = [name for name in names if len({own[name] for own in known if name in own}) > 1]
    encoders = {own.get("encoder", UNKNOWN) for own in known}
    encoder = "several" if len(encoders) > 1 else next(iter(encoders), UNKNOWN)
    return [
        {
            "run": model.name,
            "data": tested,
            "encoder": encoder,
            "objective_label": system_name(own, differing) if own else model.name,
            "seed": model.seed if own else None,
        }
        for model, own in zip(models, choices, strict=True)
    ]


def system_name(choices: Mapping[str, str], differing: Sequence[str]) -> str:
    """Return the objective and the other choices named in `differing`: `ntxent:tau=0.1, lr 0.002`."""
    parts = [choices["objective"]]
    for name in differing:
        if name != "objective":
            value = str(choices.get(name))
            parts.append(value if name == "encoder" else f"{name.replace('_', '-')} {value}")
    return ", ".join(parts)


def _common_data(models: Sequence[TrainedModel], data: str | None) -> str:
    specs = {model.name: model.choices["data"] for model in models if model.choices.get("data")}
    if data is None and len(set(specs.values())) > 1:
        listed = "; ".join(f"{name}: {spec}" for name, spec in specs.items())
        raise InputError(
            f"runs must be of the same data to be compared; got {listed}. Name what to test on with --data"
        )
    return data or next(iter(specs.values()), UNKNOWN)


def _without(model: TrainedModel, files: Sequence[str]) -> dict[str, str]:
    """Return the choices without some files; nothing where the objective is unknown."""
    if not model.choices.get("objective"):
        return {}
    return {name: value for name, value in model.choices.items() if name not in files}
