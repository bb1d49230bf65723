"""How the directions of retrieval are drawn: their names, dashes, colours and markers are the same in every picture."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pandas as pd

from lossscope.errors import InputError

NAMES = MappingProxyType(
    {"i2t": "image to text", "t2i": "text to image", "both": "both directions, in one gradient"}
)  # `both`: of a loss that adds the two
DASHES: MappingProxyType[str, Any] = MappingProxyType({"i2t": "-", "t2i": (0, (4, 2)), "both": (0, (1, 1))})
COLOURS = MappingProxyType({"i2t": "#0072B2", "t2i": "#D55E00", "both": "#009E73"})
MARKERS = MappingProxyType({"i2t": "o", "t2i": "s", "both": "D"})


def require_directions(frame: pd.DataFrame) -> None:
    """Raise InputError for rows of any other direction."""
    others = sorted(set(map(str, frame["direction"])) - set(NAMES))
    if others:
        raise InputError(f"direction must be {', '.join(NAMES)}; got {', '.join(others)}. Leave other rows out")
