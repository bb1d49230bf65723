"""A signal is a number of each pair; it is larger where the two probably match."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.facts import Missing as Missing

from .parts.material import Material
from .parts.model_view import ModelView
from .types import Floats as Floats
from .types import Group as Group
from .types import PairRows as PairRows


@dataclass(frozen=True)
class Signal(ABC):
    """A file of this package. The first line of its docstring is the formula."""

    group: ClassVar[Group] = "own"
    because: ClassVar[str]  # what a high value says of a candidate, as part of a sentence

    @abstractmethod
    def values(self, material: Material, pairs: PairRows) -> Floats:
        """Return a number of each pair, (n,); NaN where it has none. Raises Missing if the data lack what it reads.

        Args:
            material: what the audit knows of both sides.
            pairs: queries and candidates.
        """

    @classmethod
    def name(cls) -> str:
        """Return the name of its column: the name of its file, or of a plug-in's class."""
        package, _, file = cls.__module__.rpartition(".")
        return file if package == __package__ else cls.__name__


@dataclass(frozen=True)
class ModelSignal(Signal):
    """A signal of embeddings: the mean over the audit's models."""

    group: ClassVar[Group] = "embeddings"

    @abstractmethod
    def of_model(self, model: ModelView, pairs: PairRows) -> Floats:
        """Return a number of each pair under one model, (n,)."""

    def values(self, material: Material, pairs: PairRows) -> Floats:
        if not material.models:
            raise Missing("it has no embeddings; name a SOURCE")
        total = np.zeros(len(pairs), np.float64)
        for model in material.models:
            total += self.of_model(model, pairs)
        mean: Floats = (total / len(material.models)).astype(np.float32)
        return mean
