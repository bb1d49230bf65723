"""Which of several models are seeds of one system, and what is each system called?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from lossscope.errors import InputError
from lossscope.registry import brief, build, uses_file
from lossscope.sources.base import Embedded
from lossscope.spec import Spec
from lossscope.training.recipe import Recipe

UNKNOWN = "unknown"
_FILES = ("init", "info", "offline")  # differ between seeds where each has its own first stage
_SPECS = {"objective": "objectives", "encoder": "encoders", "data": "datasets"}
_CHOICES = tuple(item.name for item in fields(Recipe) if item.name != "seed")


@dataclass(frozen=True)
class Known:
    """What is known of a model without its numbers."""

    name: str
    seed: int | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, embedded: Embedded) -> Known:
        """As the source says."""
        return cls(embedded.name, embedded.seed, embedded.recipe)


def systems(models: Sequence[Known], data: str | None = None) -> list[dict[str, Any]]:
    """run, data, encoder, trained and seed of each model, the columns that `compare` wants beside its queries.

    Models whose recipes differ in the seed alone are seeds of one system; files that a recipe begins with (init, info,
    offline) count as a difference only where two of one seed could not be told apart otherwise. `trained` is the
    objective, then the other choices in which the systems differ; a model without a recipe is a system of its own
    name, whose seed nobody knows. data: spec that overrides that of the recipes.
    Raises InputError when a model is there twice, or models were made for different data.
    """
    twice = [name for name, times in Counter(model.name for model in models).items() if times > 1]
    if twice:
        raise InputError(f"runs must be given once each; got {twice[0]} several times")
    tested = _tested(models, data)
    recipes = [_choices(model, _FILES) for model in models]
    told = Counter((tuple(recipe.items()), model.seed) for recipe, model in zip(recipes, models, strict=True) if recipe)
    if max(told.values(), default=1) > 1:
        recipes = [_choices(model, ()) for model in models]
    known = [recipe for recipe in recipes if recipe]
    differing = [name for name in _CHOICES if len({str(recipe[name]) for recipe in known if name in recipe}) > 1]
    return [
        {
            "run": model.name,
            "data": tested,
            "encoder": _common([_shown("encoder", recipe.get("encoder")) for recipe in known]),
            "trained": _named(recipe, differing) if recipe else model.name,
            "seed": model.seed if recipe else None,
        }
        for model, recipe in zip(models, recipes, strict=True)
    ]


def _tested(models: Sequence[Known], data: str | None) -> str:
    found = {model.name: str(model.recipe["data"]) for model in models if model.recipe.get("data")}
    if data is None and len(set(found.values())) > 1:
        told = "; ".join(f"{name}: {spec}" for name, spec in found.items())
        raise InputError(f"runs must be of the same data to be compared; got {told}. Name what to test on with --data")
    return data or next(iter(found.values()), UNKNOWN)


def _choices(model: Known, without: Sequence[str]) -> dict[str, Any]:
    """The recipe without its seed; empty where the objective is not known."""
    if not model.recipe.get("objective"):
        return {}
    return {name: model.recipe[name] for name in _CHOICES if name in model.recipe and name not in without}


def _named(recipe: Mapping[str, Any], differing: Sequence[str]) -> str:
    more = [name for name in differing if name != "objective"]
    parts = [_shown("objective", recipe["objective"])]
    for name in more:
        value = _shown(name, recipe.get(name))
        parts.append(value if name == "encoder" else f"{name.replace('_', '-')} {value}")
    return ", ".join(parts)


def _shown(name: str, value: object) -> str:
    """A spec without what is default; one that names a Python file as it is, since nothing is imported for a name."""
    if name not in _SPECS or not value:
        return str(value)
    text = str(value)
    return text if uses_file(text) else _brief(_SPECS[name], text)


def _brief(kind: str, text: str) -> str:
    spec = Spec.parse(text)
    spec.values.pop("net", None)  # the file that an objective's net lies in, another one for every seed
    return brief(build(kind, str(spec)))


def _common(values: Sequence[str]) -> str:
    different = set(values)
    return "several" if len(different) > 1 else next(iter(different), UNKNOWN)
