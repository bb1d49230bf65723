"""Texts as 64-bit hashes of their normal forms, and sets of hashes as sorted arrays.

Hashes are Python's own, with a key that each process draws: equal texts have equal hashes, and of a hundred million
different texts two have the same one with a probability of 3 in 10,000.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lossscope.core.normal_form import normal_forms

Hashes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
EMPTY = hash("")  # of the normal form of an empty text
PART = 1 << 16  # hashes that are looked at together: what is made of them is small beside all
_OF_QUERY = np.int64(0x5851F42D4C957F2D)


def text_hashes(texts: Sequence[str]) -> Hashes:
    """Return the hash of the normal form of each text."""
    return np.fromiter(map(hash, normal_forms(texts)), np.int64, len(texts))


def pair_hashes(queries: Hashes, documents: Hashes) -> Hashes:
    """Return the hash of each query with its document."""
    return queries * _OF_QUERY + documents


def is_in(hashes: Hashes, ordered: Hashes) -> Flags:
    """Return which hashes are among sorted ones."""
    found = np.zeros(len(hashes), dtype=bool)
    for start in range(0, len(hashes) if len(ordered) else 0, PART):
        part = hashes[start : start + PART]
        order = np.argsort(part)  # looked up in their order, neighbours are in the processor's cache
        positions = np.searchsorted(ordered, part[order])
        np.minimum(positions, len(ordered) - 1, out=positions)
        found[start + order] = ordered[positions] == part[order]
    return found


def repeated(hashes: Hashes) -> tuple[int, Hashes]:
    """Return how many different hashes there are, and those that occur more than once, sorted; some may be repeated."""
    ordered = np.sort(hashes)
    equal = ordered[1:] == ordered[:-1]
    return len(hashes) - int(np.count_nonzero(equal)), ordered[1:][equal]
