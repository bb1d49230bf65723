"""Names of types that many parts share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]  # row numbers of images or captions
Progress = Callable[[str, int, int], None]  # (label, done, of)
