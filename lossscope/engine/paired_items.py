"""Do two sources have the same items in the same order? Otherwise a difference of a query has no meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.row_numbers import RowNumbers
from lossscope.core.sides import plural
from lossscope.errors import InputError


def require_same_items(first: SplitEmbeddings, second: SplitEmbeddings) -> None:
    """Raise InputError, which says what differs, unless two sources have the same items and positives."""
    names = f"{first.name} and {second.name}"
    if first.sides.text != second.sides.text:
        raise InputError(
            f"{names} must have the same sides; they have {first.sides.text} and {second.sides.text}. Compare sources "
            "of one data set"
        )
    for side, of_first, of_second in _sides(first, second):
        _require_same_ids(names, side, of_first, of_second)
    a, b = first.relations, second.relations
    same_labels = (a.labels is None) == (b.labels is None) and (
        a.labels is None or np.array_equal(a.labels, b.labels)  # type: ignore[arg-type]
    )
    if not same_labels or not np.array_equal(a.positives, b.positives):
        raise InputError(f"{names} must have the same positives; they differ. Take one --data and one --split for both")
    mined = [relations.negatives for relations in (a, b)]
    if (mined[0] is None) != (mined[1] is None):
        raise InputError(f"{names} must both have mined negatives, or neither; one has. Take --negatives none")


def unstated_ids(first: SplitEmbeddings, second: SplitEmbeddings) -> tuple[str, ...]:
    """Return the sides, such as `images`, whose ids are row numbers in both sources: no id proves that items match."""
    return tuple(
        plural(side)
        for side, of_first, of_second in _sides(first, second)
        if _are_row_numbers(of_first) and of_first == of_second
    )


def _sides(first: SplitEmbeddings, second: SplitEmbeddings) -> Sequence[tuple[str, Sequence[str], Sequence[str]]]:
    """Return the name of each side, and its ids in both sources."""
    sides = [(first.sides.first, first.image_ids, second.image_ids)]
    if first.sides.second is not None:
        sides.append((first.sides.second, first.caption_ids, second.caption_ids))
    return sides


def _are_row_numbers(ids: Sequence[str]) -> bool:
    return isinstance(ids, RowNumbers) or all(id == str(row) for row, id in enumerate(ids))


def _require_same_ids(names: str, side: str, first: Sequence[str], second: Sequence[str]) -> None:
    if len(first) != len(second):
        raise InputError(
            f"{names} must have the same {plural(side)}; they have {len(first)} and {len(second)}. Take one --data and "
            "one --split for both"
        )
    if first == second:
        return
    number = next((i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), None)
    if number is not None:
        order = "in the same order" if set(first) == set(second) else "with the same ids"
        raise InputError(
            f"{names} must have the same {plural(side)} {order}; number {number} is {first[number]!r} and "
            f"{second[number]!r}. Write both dumps from one list"
        )
