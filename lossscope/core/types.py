"""Types that many packages share; importing this file imports neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows: TypeAlias = npt.NDArray[np.int64]  # row numbers of images or captions
else:
    Rows = Any

Progress = Callable[[str, int, int], None]  # (label, done, total)
OnStep = Callable[[int, int], None]  # (done, total), of work that the caller has a label for

ItemShape = tuple[int, ...] | Mapping[str, tuple[int, ...]]  # of one image, video or feature; or several by name

Direction = Literal["i2t", "t2i"]  # queries are images, or captions
CountedDirection = Literal["i2t", "t2i", "both"]  # `both`: one gradient includes both directions
Convention = Literal["corrected", "released", "text"]  # ways of counting
# what weights are counted in: the scale of each objective's paper, shares of its saturated weight, or dL/ds itself
WeightUnit = Literal["paper", "relative", "cosine"]
SamplingMode = Literal["pairs", "images", "single"]  # how a split is cut into batches, see batches.Sampling
SameImage = Literal["keep", "mask"]  # another caption of the same image is a negative, or not valid
Reduction = Literal["sum", "mean", "pairs", "cells"]  # how the losses of queries are reduced to one number

DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")
CONVENTIONS: tuple[Convention, ...] = ("corrected", "released", "text")
WEIGHT_UNITS: tuple[WeightUnit, ...] = ("paper", "relative", "cosine")
REDUCTIONS: tuple[Reduction, ...] = ("sum", "mean", "pairs", "cells")
