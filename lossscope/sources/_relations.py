"""Which arrays of a dump are its two sides, and what they say of positives, mined negatives and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lossscope.core.relations import NONE, Relations
from lossscope.core.sides import IMAGE_TEXT, ITEM, ITEM_PROXY, PROXY, QUERY_DOCUMENT, Sides, plural
from lossscope.core.types import Rows
from lossscope.errors import InputError

from ._dump_arrays import numpy_of

ONE_SET_KEY = "embeddings"
PROXIES_KEY = plural(PROXY)
_DEFAULT_KEYS = ("queries", "documents")


@dataclass(frozen=True)
class SideKeys:
    """What the two sides of a dump are called, and the names of their arrays."""

    sides: Sides
    first: str
    second: str | None  # None: one set


def keys_of_sides(sides: Sides, present: Iterable[str]) -> SideKeys:
    """Return the arrays of each side: its name, its plural, or `queries` and `documents`.

    The usual array of one set, and of items beside `proxies`, is `embeddings`.

    Args:
        sides: as declared.
        present: names of the arrays.
    """
    there = set(present)
    names = (sides.first,) if sides.second is None else (sides.first, sides.second)
    usual = (ONE_SET_KEY, PROXIES_KEY)[: len(names)] if sides.second is None or sides.has_proxies else _DEFAULT_KEYS
    keys = []
    for name, default in zip(names, usual, strict=True):
        word = name.replace(" ", "_")
        several = plural(word) if word[-1].isalpha() else f"{word}s"
        ways = (name, word, plural(name), several, default)
        unnamed = default if sides in (QUERY_DOCUMENT, ITEM, ITEM_PROXY) else several if word[-1].isalpha() else word
        keys.append(next((way for way in ways if way in there), unnamed))
    return SideKeys(sides, keys[0], None if sides.second is None else keys[1])


def declared_sides(arrays: Mapping[str, Any], typed: str | None, path: Path) -> Sides | None:
    """Return the sides that were typed, that the dump declares, or that its arrays are named after; None: images.

    Raises InputError for names that are none.
    """
    if typed:
        return Sides.parse(typed)
    if "sides" in arrays:
        stated = np.atleast_1d(numpy_of(arrays["sides"]))
        if stated.ndim > 1 or stated.dtype.kind not in "US" or not 1 <= len(stated) <= 2:
            got = len(stated) if stated.ndim == 1 and stated.dtype.kind in "US" else f"{stated.shape} of {stated.dtype}"
            raise InputError(f"sides of {path} must be two names, or one of a set; got {got}")
        names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in stated.tolist()]
        return Sides(names[0], names[1] if len(names) == 2 else None)
    present = arrays.keys()
    if "positives" in arrays and {"images", "captions"} <= present and not {"queries", "documents"} & present:
        return IMAGE_TEXT
    if {"queries", "documents"} & present or "positives" in arrays or "query_tokens" in arrays:
        return ITEM_PROXY if PROXIES_KEY in present else QUERY_DOCUMENT
    if "labels" not in arrays:
        return None
    return ITEM_PROXY if PROXIES_KEY in present else ITEM


def read_relations(
    arrays: Mapping[str, Any], sides: Sides, shape: tuple[int, int], path: Path, notices: list[str]
) -> Relations:
    """Return the relations that a dump states.

    Args:
        arrays: by name: `labels` of one set, or rows of the proxies; `positives` (n, 2), without which row i of both
            sides are a pair; and `negatives` (q, k), -1 for none.
        sides: of the dump.
        shape: number of items of both sides.
        path: of the dump, for messages.
        notices: to which what the user should know is added.

    Raises:
        InputError: arrays of other shapes or types, rows out of range, or no positives for sides of two lengths.
    """
    if "caption_image" in arrays:
        wanted = "labels (n,)" if sides.is_one_set else "positives (n, 2)"
        raise InputError(
            f"{path} must have {wanted} for {sides.text}; it has caption_image, which is of images and captions. Drop "
            "it, or the option --caption-image"
        )
    if sides.is_one_set:
        if "positives" in arrays or "negatives" in arrays:
            raise InputError(f"{path} must have labels, and neither positives nor negatives, for one set of items")
        return Relations.of_labels(_labels(arrays, shape[0], path), sides.first)
    if sides.has_proxies and "positives" not in arrays:
        return Relations(*shape, _classes(arrays, sides, shape, path), sides)
    if "labels" in arrays:
        raise InputError(
            f"{path} must have positives (n, 2) for {sides.text}; it has labels, which are of one set. Name its array "
            f"{ONE_SET_KEY}, or give --sides NAME"
        )
    positives = _positives(arrays, sides, shape, path, notices)
    return Relations(*shape, positives, sides, negatives=_negatives(arrays, sides, shape, path))


def _labels(arrays: Mapping[str, Any], items: int, path: Path) -> Rows:
    if "labels" not in arrays:
        raise InputError(f"{path} must have labels, the class of each of its {items} items; got none")
    labels = numpy_of(arrays["labels"])
    if labels.shape != (items,) or labels.dtype.kind not in "iubUS":
        raise InputError(
            f"labels of {path} must be {items} whole numbers or texts, one per item; got {labels.shape} of "
            f"{labels.dtype}"
        )
    return np.unique(labels, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _classes(arrays: Mapping[str, Any], sides: Sides, shape: tuple[int, int], path: Path) -> Rows:
    """Return the pairs (n, 2) of each item and the proxy of its class, whose row is the label."""
    items, classes = shape
    labels = numpy_of(arrays["labels"]) if "labels" in arrays else None
    if labels is None or labels.shape != (items,) or labels.dtype.kind not in "iu":
        got = "none" if labels is None else f"{labels.shape} of {labels.dtype}"
        raise InputError(
            f"labels of {path} must be {items} rows of {plural(str(sides.second))}, the class of each of the "
            f"{plural(sides.first)}; got {got}. To leave out the {plural(str(sides.second))}: --sides {sides.first}"
        )
    _require_rows(labels, classes, f"labels of {path}, rows of {plural(str(sides.second))},")
    return np.stack([np.arange(items, dtype=np.int64), labels.astype(np.int64)], 1)


def _positives(arrays: Mapping[str, Any], sides: Sides, shape: tuple[int, int], path: Path, notices: list[str]) -> Rows:
    first, second = plural(sides.first), plural(str(sides.second))
    if "positives" not in arrays:
        if shape[0] != shape[1]:
            raise InputError(
                f"{path} must hold positives, (n, 2) rows of {first} and {second}, unless row i of both is a pair; got "
                f"{shape[0]} {first} and {shape[1]} {second}"
            )
        notices.append(f"{path} has no positives: row i of {first} and row i of {second} are taken as a pair")
        return np.stack([np.arange(shape[0], dtype=np.int64)] * 2, 1)
    rows = numpy_of(arrays["positives"])
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu" or not len(rows):
        raise InputError(
            f"positives of {path} must be (n, 2) rows of {first} and {second}; got {rows.shape} of {rows.dtype}"
        )
    fits = rows.min() >= 0 and rows[:, 0].max() < shape[1] and rows[:, 1].max() < shape[0]
    hint = ""
    if fits and "similarity" in arrays:
        hint = f". Rows of similarity are {first}: where yours are {second}, write similarity=S.T"
    elif fits:
        hint = f". Columns are {first}, {second}: where yours are the other way round, write positives[:, ::-1]"
    _require_rows(rows[:, 0], shape[0], f"{first} in positives of {path}", hint)
    _require_rows(rows[:, 1], shape[1], f"{second} in positives of {path}", hint)
    rows = rows.astype(np.int64)
    copies = len(rows) - len(np.unique(rows, axis=0))
    if copies:
        raise InputError(
            f"positives of {path} must have each pair once; {copies} rows are copies of others: drop those"
        )
    without = shape[0] - len(np.unique(rows[:, 0]))
    if without:
        notices.append(f"{without} of {shape[0]} {first} of {path} have no positive: they are in no batch")
    return rows


def _negatives(arrays: Mapping[str, Any], sides: Sides, shape: tuple[int, int], path: Path) -> Rows | None:
    if "negatives" not in arrays:
        return None
    rows = numpy_of(arrays["negatives"])
    second = plural(str(sides.second))
    if rows.ndim != 2 or len(rows) != shape[0] or rows.dtype.kind not in "iu" or not rows.shape[1]:
        raise InputError(
            f"negatives of {path} must be (q, k) rows of {second}, one row for each of {shape[0]} "
            f"{plural(sides.first)}, -1 for none; got {rows.shape} of {rows.dtype}"
        )
    rows = rows.astype(np.int64)
    _require_rows(rows[rows != NONE], shape[1], f"{second} in negatives of {path}")
    return rows


def _require_rows(rows: Any, size: int, what: str, hint: str = "") -> None:
    """Raise InputError, naming the first, for a row out of range.

    Args:
        rows: numbers of rows.
        size: how many there are.
        what: the rows are, for the message.
        hint: what to type, if that is known.
    """
    bad = np.flatnonzero((rows < 0) | (rows >= size))
    if len(bad):
        raise InputError(f"{what} must be rows 0..{size - 1}; entry {int(bad[0])} is {int(rows[bad[0]])}{hint}")
