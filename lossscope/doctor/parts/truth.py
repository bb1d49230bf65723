"""Which items match, where the data set knows the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Truth:
    """Whether items match, exactly, (N, M) of the sample."""

    match: npt.NDArray[np.bool_]
