"""Which objectives can run on a source? Those that take its batches; each other one with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError, SpecError
from lossscope.objectives.base import Objective
from lossscope.registry import build, expand, names

from .analysis_batches import draw_batches, rows_of_batch
from .analysis_options import AnalysisBatches

ALL = "all"  # stands for every objective with its defaults that is no part of another


@dataclass(frozen=True)
class FittingObjectives:
    """Objectives that run on a source, by title."""

    objectives: Mapping[str, Objective]  # title -> objective; the title is the spec as it was typed
    left_out: Mapping[str, str]  # title -> reason
    lacking: Mapping[str, str]  # title of an objective that runs -> what its training has, and batches here lack

    @property
    def notes(self) -> list[str]:
        """Sentences without a full stop that a reader must know."""
        left_out = [f"{title} is left out: {reason}" for title, reason in self.left_out.items()]
        return [*left_out, *(f"{title} runs without {text}" for title, text in self.lacking.items())]


def titles_of(words: Iterable[str]) -> tuple[dict[str, str], frozenset[str]]:
    """Return title -> spec of what was typed, ranges expanded, and the titles that only `all` names.

    Raises SpecError for a spec that cannot be read.
    """
    words = list(words)
    typed = {spec: spec for word in words if word != ALL for spec in expand("objectives", word)}
    named = {title.replace("-", "_") for title in typed}
    everything = [name for name in names("objectives") if ALL in words and name not in named and not _is_part(name)]
    return {**typed, **dict(zip(everything, everything, strict=True))}, frozenset(everything)


def _is_part(name: str) -> bool:
    objective: Objective = build("objectives", name)
    return objective.traits.is_part


def fitting_objectives(
    embedded: SplitEmbeddings, words: Iterable[str], batches: AnalysisBatches | None = None
) -> FittingObjectives:
    """Try each objective on the first batch of a source.

    Args:
        embedded: the split.
        words: specs, with ranges; `all` stands for every objective with its defaults, but parts of others.
        batches: how batches are made; None: the defaults.

    Raises:
        InputError: an objective that was named does not run, or none does. Of `all`, such objectives are left out.
        SpecError: a spec cannot be read.
    """
    specs, optional = titles_of(words)
    rows = rows_of_batch(embedded, draw_batches(embedded, batches)[0])
    objectives: dict[str, Objective] = {}
    left_out: dict[str, str] = {}
    lacking: dict[str, str] = {}
    for title, spec in specs.items():
        try:
            objective: Objective = build("objectives", spec)
            finite = all(bool(torch.isfinite(part.weights(objective)).all()) for part in rows)
            if not finite:
                raise InputError("weights must be finite; those on the first batch are not")
        except InputError as error:
            if title not in optional:
                kind = SpecError if isinstance(error, SpecError) else InputError
                raise kind(f"{title} must take the batches of {embedded.name}; {error}") from error
            left_out[title] = str(error)
            continue
        objectives[title] = objective
        missing = _missing(objective)
        if missing:
            lacking[title] = missing
    if not objectives:
        reasons = "; ".join(f"{title}: {reason}" for title, reason in left_out.items())
        raise InputError(f"an objective must take the batches of {embedded.name}; none does. {reasons}")
    return FittingObjectives(objectives, left_out, lacking)


def _missing(objective: Objective) -> str:
    """Return what the training of an objective has of each pair, and batches here lack; empty where that is nothing."""
    traits = objective.traits
    parts = [f"`{name}`, which its training has" for name in traits.required_info]
    if traits.estimates_labels:
        parts.append("the labels that its training estimates")
    if objective.network() is not None:
        parts.append("training of its network, which has initial weights")
    return " and without ".join(parts)
