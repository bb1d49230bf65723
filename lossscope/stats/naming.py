"""Which of several models are seeds of one system, and what is each system called?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lossscope.errors import InputError

UNKNOWN = "unknown"
NO_SEED = "none"
_FILES = ("init", "info", "offline")  # differ between seeds where each has its own first stage


@dataclass(frozen=True)
class TrainedModel:
    """What is known of a model's training, without its results."""

    name: str  # of the run or file
    seed: int | None = None  # None: unknown
    choices: Mapping[str, str] = field(default_factory=dict)  # of its training, as they are printed; empty: unknown


def name_systems(models: Sequence[TrainedModel], data: str | None = None) -> list[dict[str, Any]]:
    """Return run, data, encoder, objective_label and seed of each model: the columns `compare` needs beside queries.

    Models whose choices are the same are seeds of one system, called by `label_systems`.

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
    encoders = {model.choices.get("encoder", UNKNOWN) for model in models if _is_known(model)}
    encoder = "several" if len(encoders) > 1 else next(iter(encoders), UNKNOWN)
    return [
        {
            "run": model.name,
            "data": tested,
            "encoder": encoder,
            "objective_label": label,
            "seed": model.seed if _is_known(model) else None,
        }
        for model, label in zip(models, label_systems(models), strict=True)
    ]


def label_systems(models: Sequence[TrainedModel], within: Sequence[str] = ()) -> list[str]:
    """Return what each model's system is called: its objective, then every other choice in which systems differ.

    `ntxent:tau=0.1, lr 0.002`. The files that a training begins with (init, info, offline) count as a difference only
    where two runs of one seed have the same other choices. A model without choices is a system of its own name.

    Args:
        models: whose labels are wanted.
        within: choices that are shown elsewhere: systems are distinguished only among those that share them.
    """
    choices = [_without(model, _FILES) for model in models]
    runs = Counter((tuple(chosen.items()), model.seed) for chosen, model in zip(choices, models, strict=True) if chosen)
    if max(runs.values(), default=1) > 1:
        choices = [_without(model, ()) for model in models]
    labels = []
    for model, chosen in zip(models, choices, strict=True):
        same = [other for other in choices if other and all(other.get(name) == chosen.get(name) for name in within)]
        names = dict.fromkeys(name for other in same for name in other)
        differing = [name for name in names if len({other[name] for other in same if name in other}) > 1]
        labels.append(_label(chosen, differing) if chosen else model.name)
    return labels


def require_distinct_seeds(runs: Iterable[tuple[str, str, float | None]]) -> None:
    """Raise InputError where two runs of one system have the same seed, or one of several has none.

    Args:
        runs: system, name and seed of each; None and NaN are no seed.
    """
    systems: dict[str, dict[str, str]] = {}
    for system, run, seed in runs:
        by_seed = systems.setdefault(system, {})
        text = NO_SEED if seed is None or seed != seed else f"{seed:g}"
        clash = text if text in by_seed else next(iter(by_seed), None) if NO_SEED in (text, *by_seed) else None
        if clash is not None:
            seeds = f"both have {text}" if clash == text else f"have {clash} and {text}"
            raise InputError(
                f"runs of {system} must have different seeds; {by_seed[clash]} and {run} {seeds}. Leave one out, or "
                "train it with another --seed"
            )
        by_seed[text] = run


def _label(choices: Mapping[str, str], differing: Sequence[str]) -> str:
    parts = [choices["objective"]]
    for name in differing:
        if name != "objective":
            value = str(choices.get(name))
            parts.append(value if name == "encoder" else f"{name.replace('_', '-')} {value}")
    return ", ".join(parts)


def _is_known(model: TrainedModel) -> bool:
    return bool(model.choices.get("objective"))


def _common_data(models: Sequence[TrainedModel], data: str | None) -> str:
    specs = {model.name: model.choices["data"] for model in models if model.choices.get("data")}
    if data is None and len(set(specs.values())) > 1:
        listed = "; ".join(f"{name}: {spec}" for name, spec in specs.items())
        raise InputError(
            f"runs must be of the same data for a comparison; got {listed}. Name what to test on with --data"
        )
    return data or next(iter(specs.values()), UNKNOWN)


def _without(model: TrainedModel, files: Sequence[str]) -> dict[str, str]:
    """Return the choices without some files; nothing where the objective is unknown."""
    if not model.choices.get("objective"):
        return {}
    return {name: value for name, value in model.choices.items() if name not in files}
