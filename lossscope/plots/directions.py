"""How the directions of retrieval are drawn: their names, dashes, colours and markers are the same in every picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lossscope.core.sides import IMAGE_TEXT, ITEM, QUERY_DOCUMENT, Sides
from lossscope.errors import InputError
from lossscope.stats.metric_names import is_direction

SIDES = "sides"  # column of rows that are not of images and captions: `query/document`
_SIDES: ContextVar[Sides | None] = ContextVar("sides", default=None)


@dataclass(frozen=True)
class DirectionStyle:
    """How one direction is drawn."""

    label: str  # q2d
    name: str  # query to document
    dashes: Any
    colour: str
    marker: str
    offset: float  # of its marker in a row of several directions


_LOOKS: tuple[tuple[Any, str, str, float], ...] = (
    ("-", "#0072B2", "o", -0.14),  # queries of the first side
    ((0, (4, 2)), "#D55E00", "s", 0.14),  # of the second
    ((0, (1, 1)), "#009E73", "D", 0.0),  # `both`: of a loss that adds the two
)


@contextmanager
def named_after(sides: Sides | None) -> Iterator[None]:
    """Name directions after these sides in what is drawn inside; None: after those that rows state."""
    token = _SIDES.set(sides)
    try:
        yield
    finally:
        _SIDES.reset(token)


def styles(frame: pd.DataFrame) -> dict[str, DirectionStyle]:
    """Return label -> look of the directions of rows, the first side's first, then the second's, then `both`."""
    present = [str(label) for label in frame["direction"].unique()]
    sides = _sides_of(frame, present)
    named = [label for label in sides.labels if label in present]
    others = [label for label in present if label not in named and label != "both"]
    looks = {label: sides.labels.index(label) for label in named}
    looks |= {label: min(index + len(named), 1) for index, label in enumerate(others)}
    looks |= {"both": 2} if "both" in present else {}
    return {label: DirectionStyle(label, _name(label, sides), *_LOOKS[look]) for label, look in looks.items()}


def require_directions(frame: pd.DataFrame) -> None:
    """Raise InputError for rows of what is no direction, or of more than those of two sides."""
    given = sorted(set(map(str, frame["direction"])))
    wrong = [label for label in given if label != "both" and not is_direction(label)]
    two = {label for label in given if label not in ("both", *wrong)}
    if wrong or len(two) > 2 or (len(two) == 2 and len({frozenset(label) for label in two}) > 1):
        raise InputError(
            f"direction must be i2t, t2i, both, or those of other sides, such as q2d and d2q; got "
            f"{', '.join(wrong or given)}. Leave other rows out"
        )


def _sides_of(frame: pd.DataFrame, present: list[str]) -> Sides:
    """Return the sides that rows state, that they are drawn under, or that their directions are of."""
    stated = [text for text in frame[SIDES].dropna().unique() if text] if SIDES in frame else []
    if stated:
        return Sides.parse(str(stated[0]))
    known = (*([_SIDES.get()] if _SIDES.get() else []), IMAGE_TEXT, QUERY_DOCUMENT, ITEM)
    directions = set(present) - {"both"}
    fitting = [sides for sides in known if sides is not None and directions <= set(sides.labels)]
    return fitting[0] if fitting else IMAGE_TEXT


def _name(label: str, sides: Sides) -> str:
    return sides.words(label) if label in (*sides.labels, "both") else label
