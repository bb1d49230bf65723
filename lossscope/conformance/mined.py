"""What a step does with mined negatives, which not every step takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from lossscope.core.facts import Missing

from .case import UNREADABLE, Case
from .pulls import Pulls
from .trial_embeddings import HARD, NEAR


@dataclass(frozen=True)
class Mined:
    """Weights on one process, with mined negatives that are less similar than the positive."""

    pulls: Pulls
    call: ClassVar[str] = "mined"
    hard: ClassVar[float] = 0.0

    @classmethod
    def of(cls, case: Case) -> Self:
        """Read them. Raises Missing where the call was not made, or raised an error."""
        result = case.alone.get(cls.call)
        if result is None:
            raise Missing(UNREADABLE)
        return cls(case.read(result, mined=True, hard=cls.hard))


class Hard(Mined):
    """With mined negatives that are more similar than the positive."""

    call, hard = "hard", HARD


class Hardest(Mined):
    """With mined negatives that are nearly the query."""

    call, hard = "hardest", NEAR
