"""What may be chosen in the analyses of losses? Options alone: to read them imports neither torch nor pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from lossscope.core.choices import BATCHES, Choice, require_choices

from .options import read_batch_size


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
