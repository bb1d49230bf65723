"""Does an ordering hold in a universe? The numbers of its two systems, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .kept_numbers import KeptNumbers


@dataclass(frozen=True)
class Value:
    """The number of a system in a universe."""

    value: float = math.nan
    epoch: float = math.nan
    batch_size: float = math.nan
    n: float = math.nan  # batches, or queries
    reason: str = ""  # why there is no number

    @classmethod
    def of(cls, kept: KeptNumbers, probe: str, wanted: tuple[str, str], epoch: int) -> Value:
        """Return the wanted (direction, statistic) of a probe, or why there is none."""
        direction, statistic = wanted
        size = math.nan if kept.batch_size is None else kept.batch_size
        if probe in kept.refused:
            return cls(epoch=epoch, batch_size=size, reason=kept.refused[probe])
        number = kept.number(probe, direction, statistic)
        if number is None:
            return cls(epoch=epoch, batch_size=size, reason=f"the loss has no {direction} {statistic}")
        if number.mean is None:
            reason = f"{statistic} is not defined: no query counts a negative"
            return cls(epoch=epoch, batch_size=size, n=number.n, reason=reason)
        return cls(number.mean, epoch, size, number.n)


def compare(found: Sequence[Value]) -> dict[str, Any]:
    """Return the columns of a row that follow from the numbers of the lower and the higher system."""
    low, high = found
    defined = not (math.isnan(low.value) or math.isnan(high.value))
    difference = high.value - low.value
    return {
        "value_lower": low.value, "value_higher": high.value, "difference": difference,
        "holds": low.value < high.value if defined else None, "tie": defined and difference == 0,
        "reason": "; ".join(dict.fromkeys(value.reason for value in found if value.reason)),
        "epoch_lower": low.epoch, "epoch_higher": high.epoch, "batch_size_lower": low.batch_size,
        "batch_size_higher": high.batch_size, "n_lower": low.n, "n_higher": high.n,
    }  # fmt: skip
