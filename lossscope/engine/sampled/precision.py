"""How many queries does a number to ± 1 % take? Estimate it from a pilot sample, whose queries count, too."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lossscope.core.intervals import Interval
from lossscope.errors import OptionError

from .intervals import OTHERS

PILOT = 1000  # queries
_SAFETY = 1.1  # factor on the number of queries, as their deviation is an estimate


@dataclass(frozen=True)
class Precision:
    """A target: half the width of the interval of a statistic is at most `share` of the statistic."""

    statistic: str
    share: float

    @classmethod
    def parse(cls, text: str) -> Precision:
        """Read `C_neg=1%` or `C_neg=0.01`. Raises OptionError for anything else.

        >>> Precision.parse("C_neg=1%")
        Precision(statistic='C_neg', share=0.01)
        """
        name, _, number = (part.strip() for part in text.partition("="))
        try:
            share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            share = math.nan
        if not name or not 0 < share < 1:
            raise OptionError(f"--precision-of must be a statistic and a share below 100 %, as C_neg=1%; got {text!r}")
        return cls(name, share)

    def queries_needed(self, value: float, interval: Interval, sampled: int, population: int) -> int:
        """Return the number of queries that the statistic needs; 0 if the sample is enough.

        The squared width goes with 1/n − 1/N, so n' = 1 / (1/N + (share / reached)² (1/n − 1/N)), times 1.1.

        Args:
            value: of the statistic in the sample.
            interval: of the statistic.
            sampled: n.
            population: N.

        Raises:
            InputError: the pilot is not enough: the statistic is 0, undefined or has no interval.
        """
        if sampled >= population:
            return 0
        reached = (interval.high - interval.low) / 2 / abs(value) if value else math.nan
        if math.isnan(reached):
            raise OptionError(
                "--precision-of needs a statistic that varies and is not 0. If most queries have one value, "
                f"{OTHERS} or more must differ. {self.statistic} of {sampled} queries is {value:g}. State the "
                "number of queries: --queries"
            )
        if reached <= self.share:
            return 0
        ideal = 1 / (1 / population + (self.share / reached) ** 2 * (1 / sampled - 1 / population))
        return min(math.ceil(_SAFETY * ideal), population)
