"""Types that many packages share; importing this file imports neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    Rows: TypeAlias = npt.NDArray[np.int64]  # row numbers of images or captions
else:
    Rows = Any

Progress = Callable[[str, int, int], None]  # (label, done, total)
OnStep = Callable[[int, int], None]  # (done, total), of work that the caller has a label for

ItemShape = tuple[int, ...] | Mapping[str, tuple[int, ...]]  # of one image, video or feature; or several by name
TEXT_SHAPE: ItemShape = ()  # of a text, which may have any length

# queries are the first side, such as images, or the second; `sides.Sides.label` has the names that users see
Direction = Literal["i2t", "t2i"]
CountedDirection = Literal["i2t", "t2i", "both"]  # `both`: one gradient includes both directions
Convention = Literal["corrected", "released", "text"]  # ways of counting
# what weights are counted in: the scale of each objective's paper, shares of its saturated weight, or dL/ds itself
WeightUnit = Literal["paper", "relative", "cosine"]
# how a split is cut into batches, see batches.Sampling
SamplingMode = Literal["pairs", "images", "single", "groups", "classes", "views", "proxies"]
TrainingMode = Literal["pairs", "images", "single", "groups"]  # those of them that training takes
SameImage = Literal["keep", "mask"]  # another positive of the same item is a negative, or not valid
MinedNegatives = Literal["batch", "own", "none"]  # of all queries, of the query alone, or left out
Reduction = Literal["sum", "mean", "pairs", "cells"]  # how the losses of queries are reduced to one number

LEVEL = 0.95  # of intervals, unless another is given
LEAST_SUSPECT = 0.05  # probability from which an audit lists a pair, unless its threshold is lower or its list too long
HIDDEN_FROM = 0.1  # probability to match from which a pair of an audit is left out, unless another is stated

DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")
CONVENTIONS: tuple[Convention, ...] = ("corrected", "released", "text")
WEIGHT_UNITS: tuple[WeightUnit, ...] = ("paper", "relative", "cosine")
SAMPLING_MODES: tuple[SamplingMode, ...] = ("pairs", "images", "single", "groups", "classes", "views", "proxies")
MINED_NEGATIVES: tuple[MinedNegatives, ...] = ("batch", "own", "none")
REDUCTIONS: tuple[Reduction, ...] = ("sum", "mean", "pairs", "cells")


class Gradients(Protocol):
    """From dL/dS (q, c) to the gradient of each layer of a model."""

    def __call__(self, G: Tensor) -> Mapping[str, Tensor]:
        """Return layer -> () the norm of its gradient."""
        ...

    def vectors(self, G: Tensor) -> Mapping[str, Tensor]:
        """Return layer -> (n,) its gradient."""
        ...
