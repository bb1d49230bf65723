"""What is asked of comparisons of systems and of their power: options that import nothing heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from lossscope.core.choices import Choice, require_choices
from lossscope.errors import OptionError

from .metric_names import METRICS, is_metric, is_statistic


def read_numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the whole numbers of `3,5,10`, in order, once each. Raises OptionError for anything else.

    Args:
        option: as typed, for the message.
        text: numbers with commas; none where it is empty.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise OptionError(f"{option} must be whole numbers such as 3,5,10; got {text!r}")
    return tuple(sorted({int(part) for part in parts}))


def _read_seeds(text: str) -> tuple[int, ...]:
    return read_numbers("--seeds", text)


def _read_images(text: str) -> tuple[int, ...]:
    return read_numbers("--images", text)


@dataclass(frozen=True)
class Resampling:
    """Options of the permutation tests and of the bootstrap. Raises OptionError for values out of range."""

    # number of permutations and of bootstrap samples
    resamples: Annotated[
        int, Choice(None, "Number of permutations and of bootstrap samples.", low=99, high=1_000_000)
    ] = 9999
    seed: Annotated[int, Choice(None, "Seed of the permutations and the bootstrap.", low=0)] = 0
    level: Annotated[float, Choice(None, "Level of the confidence intervals.")] = 0.95

    def __post_init__(self) -> None:
        require_choices(self)
        if not 0 < self.level < 1:
            raise OptionError(f"--level must be between 0 and 1; got {self.level}. 0.95 is usual")


@dataclass(frozen=True)
class Design:
    """What it takes for a difference to count as detectable. Raises OptionError for values out of range."""

    power: Annotated[float, Choice(None, "Probability of finding the difference.")] = 0.8
    # two-sided level of the test: p at most this is a finding
    alpha: Annotated[float, Choice(None, "Two-sided level of the test of a single comparison.")] = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise OptionError(f"--alpha must be between 0 and 1; got {self.alpha:g}. 0.05 is usual")
        if not self.alpha < self.power < 1:
            raise OptionError(
                f"--power must be between --alpha, {self.alpha:g}, and 1; got {self.power:g}. 0.8 is usual"
            )


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of the pilot runs. Raises OptionError for values out of range."""

    seeds: Annotated[tuple[int, ...], Choice(None, "Numbers of seeds.", shown="3,5,10,20", read=_read_seeds)] = (
        3, 5, 10, 20,
    )  # fmt: skip
    # besides that of the pilot
    images: Annotated[
        tuple[int, ...],
        Choice(
            None, "Numbers of images or queries besides that of the study: 1000,5000.", shown=False, read=_read_images
        ),
    ] = ()
    # in the unit of the metric; None: none is asked
    difference: Annotated[
        float | None,
        Choice(None, "Difference to detect, in units of the metric: print how many seeds or images it takes."),
    ] = None
    design: Design = Design()

    def __post_init__(self) -> None:
        if not self.seeds:
            raise OptionError("--seeds must be numbers such as 3,5,10; got none")
        for name, numbers in (("seeds", self.seeds), ("images", self.images)):
            if any(number < 2 for number in numbers):
                raise OptionError(f"--{name} must be at least 2; got {', '.join(map(str, numbers))}")
        if self.difference is not None and not 0 < self.difference < math.inf:
            raise OptionError(f"--difference must be above 0; got {self.difference:g}. Give it in units of the metric")


@dataclass(frozen=True)
class Comparison:
    """Which systems are compared, and on which metrics. Raises OptionError for a name of no metric."""

    metric: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Metric: rsum, i2t_R@1, t2i_MRR, ..., for other sides q2d_nDCG@10, all_MAP@R, ..., or all; "
            "repeat for several. Default: rsum, for other sides nDCG@10 of the first direction.",
            shown=False,
            words=(*METRICS, "all"),
        ),
    ] = ()
    baseline: Annotated[str | None, Choice(None, "System, or one of its runs, to compare all others with.")] = None
    all_pairs: Annotated[bool, Choice(None, "Compare every system with every other.", flags="--all-pairs")] = False

    def __post_init__(self) -> None:
        if self.baseline is not None and self.all_pairs:
            raise OptionError("--baseline and --all-pairs exclude each other; give one of them")
        unknown = [name for name in self.metric if name != "all" and not is_metric(name) and not is_statistic(name)]
        if unknown:
            raise OptionError(f"--metric must be one of {', '.join((*METRICS, 'all'))}; got {unknown[0]!r}")
