"""Does each id name one item, and can a person tell two of them apart?"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from lossscope.errors import InputError
from lossscope.visible_text import show_text

from .sides import Sides

_BLANKS = re.compile(r"\s+")
_JOINERS = re.compile("[\u200c\u200d]")
_SHOWN = 3  # rows, and pairs of ids, that a message names
_LONGEST = 60  # letters of an id in a message


def repeated_rows(ids: Sequence[str]) -> dict[str, list[int]]:
    """Return id -> its rows, of those ids that several items have.

    >>> repeated_rows(["a", "b", "a"])
    {'a': [0, 2]}
    """
    if len(set(ids)) == len(ids):
        return {}
    rows: dict[str, list[int]] = {}
    for row, item in enumerate(ids):
        rows.setdefault(item, []).append(row)
    return {item: found for item, found in rows.items() if len(found) > 1}


def rows_text(rows: Sequence[int]) -> str:
    """Return `rows 0 and 39`, of many rows the first ones.

    >>> rows_text([0, 39]), rows_text([0, 3, 9, 11])
    ('rows 0 and 39', 'rows 0, 3, 9 and 1 more')
    """
    shown = list(map(str, rows[:_SHOWN])) + ([f"{len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else [])
    return f"rows {', '.join(shown[:-1])} and {shown[-1]}"


def require_unique(what: str, ids: Sequence[str], name: str, purpose: str) -> None:
    """Raise InputError for an id that several items have, with its rows.

    Args:
        what: image or caption, whose ids they are.
        ids: n.
        name: of the source or data, as messages name it.
        purpose: why ids must differ, `to identify queries`.
    """
    repeated = repeated_rows(ids)
    if repeated:
        (item, rows), *others = repeated.items()
        more = f", and {len(others)} other {'id repeats' if len(others) == 1 else 'ids repeat'}" if others else ""
        raise InputError(
            f"{what} ids of {name} must be unique {purpose}; {show_id(item)} is the id of {rows_text(rows)}{more}. "
            f"Give each row its own id, or leave {what}_id out: numbers of rows are then the ids"
        )


def named_ids(sides: Sides, first: Sequence[str], second: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """Return the name of each side with the ids of its items; one set has one side.

    >>> [name for name, _ in named_ids(Sides("item", None), ["a"], ["a"])]
    ['item']
    """
    return [(sides.first, first), *([] if sides.second is None else [(sides.second, second)])]


def look_alikes(what: str, ids: Sequence[str], name: str) -> tuple[str, ...]:
    """Return a notice where ids differ only in what a person cannot see.

    These are blanks, their number and kind, joiners, forms of the same letter in Unicode, and control characters
    against their visible forms. Letters of other scripts that look alike are not compared.

    Args:
        what: image or caption, whose ids they are.
        ids: n.
        name: of the source or data.

    >>> look_alikes("image", ["x", "x ", "y"], "a.npz")[0]
    "2 image ids of a.npz look like another one, such as 'x' and 'x ' (rows 0 and 1): files keep them apart, a person \
cannot. Rename one of each"
    """
    seen: dict[str, int] = {}
    alike: dict[int, int] = {}  # row -> an earlier row of another id that looks the same
    for row, item in enumerate(ids):
        first = seen.setdefault(_looks(item), row)
        if ids[first] != item:
            alike[row] = first
    if not alike:
        return ()
    row, first = next(iter(alike.items()))
    return (
        f"{len({*alike, *alike.values()})} {what} ids of {name} look like another one, such as {ids[first]!a} and "
        f"{ids[row]!a} (rows {first} and {row}): files keep them apart, a person cannot. Rename one of each",
    )


def _looks(item: str) -> str:
    """Return what a person sees of an id."""
    if item.isascii() and item.isprintable():
        return " ".join(item.split()) if " " in item else item
    plain = _JOINERS.sub("", unicodedata.normalize("NFC", show_text(item)))
    return _BLANKS.sub(" ", plain).strip()


def show_id(item: str) -> str:
    """Return an id as a message shows it: in quotes, at most 60 letters, without what steers a terminal."""
    text = show_text(item)
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")
