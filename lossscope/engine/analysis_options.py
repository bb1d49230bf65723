"""What may be chosen in the analyses of losses? Options alone: to read them imports neither torch nor pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from lossscope.core.choices import BATCHES, Choice, require_choices
from lossscope.errors import OptionError

from .options import read_batch_size

_GRID = "Grid"


@dataclass(frozen=True)
class AnalysisBatches:
    """Which batches of a source an analysis reads, see `analysis_batches.draw_batches`.

    Raises OptionError for values out of their range.
    """

    batch_size: Annotated[
        int | None, Choice(BATCHES, "Pairs per batch, or `all`.", shown="128", read=read_batch_size)
    ] = 128
    batches: Annotated[int | None, Choice(BATCHES, "Number of batches, the first ones.", shown="all full", low=1)] = (
        None
    )
    seed: Annotated[int, Choice(BATCHES, "Seed of batches and of initial weights.", low=0)] = 0

    def __post_init__(self) -> None:
        require_choices(self)


@dataclass(frozen=True)
class AlignmentOptions:
    """How gradients are compared, on which batches. Raises OptionError for values out of their range."""

    batches: AnalysisBatches = AnalysisBatches()
    direction: Annotated[
        Literal["both", "i2t", "t2i"],
        Choice(BATCHES, "Queries: of both sides, of the first (i2t) or of the second (t2i)."),
    ] = "both"
    cut: Annotated[
        float, Choice(None, "Mean cosine from which two clusters of losses are one.", low=-1.0, high=1.0)
    ] = 0.9

    def __post_init__(self) -> None:
        require_choices(self)


@dataclass(frozen=True)
class FactorOptions:
    """Which similarities a weight field covers, and which batches a loss is fitted on.

    Raises OptionError for values out of their range.
    """

    low: Annotated[float, Choice(_GRID, "Smallest similarity of the field.", low=-1.0, high=1.0)] = -1.0
    high: Annotated[float, Choice(_GRID, "Largest similarity of the field.", low=-1.0, high=1.0)] = 1.0
    points: Annotated[
        int | None,
        Choice(
            _GRID,
            "Points along each side of the field.",
            shown="80; 40 for a loss that is called once a point",
            low=5,
            high=401,
        ),
    ] = None
    batches: AnalysisBatches = AnalysisBatches(batches=4)

    def __post_init__(self) -> None:
        require_choices(self)
        if not self.low < self.high:
            raise OptionError(f"--low must be below --high; got {self.low:g} and {self.high:g}")
