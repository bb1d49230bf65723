"""How is the utility of one step measured? Options that import nothing heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from lossscope.core.choices import BATCHES, Choice, require_choices
from lossscope.core.types import LEVEL, TrainingMode, WeightUnit
from lossscope.engine.options import read_level
from lossscope.errors import OptionError

_MODES = ("pairs", "images", "single", "groups")


@dataclass(frozen=True)
class UtilityOptions:
    """The length of the step, and the batches. Raises OptionError for values that cannot be."""

    # 1e-4: on `tiny` changes are in proportion to it within 6 %; at 1e-3 they are half of that or less
    step: Annotated[float, Choice(None, "Length of the step, as a share of the norm of the parameters.")] = 1e-4
    batches: Annotated[int, Choice(BATCHES, "Batches of the training split; one step on each.", low=1)] = 20
    # pairs, or images; None: that of the training, 128 where it is not known
    batch_size: Annotated[
        int | None,
        Choice(BATCHES, "Pairs or images per batch.", shown="that of the training, else 128", low=2),
    ] = None
    # of a batch; None: images or groups where every objective takes several positives, else pairs
    sampling: Annotated[
        TrainingMode | None,
        Choice(
            BATCHES,
            "Content of a batch, the same for all objectives: pairs; one pair of each image; images or groups with "
            "all their positives.",
            shown="what objectives need",
            words=_MODES,
        ),
    ] = None
    seed: Annotated[int, Choice(BATCHES, "Seed of the batches.", low=0)] = 0
    eps: Annotated[float, Choice(None, "Threshold: a weight strictly above it counts.")] = 0.01
    unit: Annotated[
        WeightUnit | None,
        Choice(
            None,
            "Unit of weights and eps: that of the paper, shares of the loss's saturated weight, or dL/ds itself.",
            shown="paper; relative for several objectives",
        ),
    ] = None
    # level of the intervals over batches; None: no intervals
    interval: Annotated[
        float | None,
        Choice(BATCHES, "Level of the intervals over batches, 95 or 0.95; none: none.", shown="95", read=read_level),
    ] = LEVEL

    def __post_init__(self) -> None:
        require_choices(self)
        if not 0 < self.step < 1:
            raise OptionError(f"--step must be a share above 0 and below 1, as 0.001; got {self.step:g}")
        if not 0 <= self.eps < math.inf:
            raise OptionError(f"--eps must be a finite number >= 0; got {self.eps:g}")
        if self.interval is not None and not 0 < self.interval < 1:
            raise OptionError(f"--interval must be a level between 0 and 1, as 0.95, or none; got {self.interval}")
