"""Which rows have a positive that is a near copy of one of an earlier row? Candidates are read again and compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

from lossscope.core.normal_form import normal_forms
from lossscope.core.plain_text import is_near_duplicate
from lossscope.core.types import Rows

from .hashes import Flags, Hashes, is_in

Texts = Iterable[tuple[Rows, list[str]]]  # places of texts, and these


@dataclass(frozen=True)
class NearDuplicates:
    """Rows of one split whose positives are near copies of those of earlier rows."""

    rows: Flags  # (n,)
    texts: Hashes  # sorted hashes of positives that make a row such
    cut: int  # different texts that share a part with so many others that they were not compared by it


def compare(pairs: Rows, positions: Rows, texts: Texts) -> Rows:
    """(k, 2) those pairs of places whose texts are near copies.

    Args:
        pairs: (n, 2) places.
        positions: sorted, of all pairs.
        texts: of each of these places, in any order, in parts.
    """
    with tempfile.TemporaryFile() as file:  # on disk, as half of a corpus may have copies
        spans = _write_forms(file, positions, texts)
        near = [
            is_near_duplicate(*(_read_form(file, *spans[number]) for number in pair))
            for pair in np.searchsorted(positions, pairs).tolist()
        ]
    copies: Rows = pairs[np.array(near, bool)]
    return copies


def _write_forms(file: IO[bytes], positions: Rows, texts: Texts) -> Rows:
    """(n, 2) where the normal form of the text of each place begins in a file, and its bytes."""
    spans, end = np.zeros((len(positions), 2), np.int64), 0
    for part, contents in texts:
        forms = [form.encode("utf-8", "surrogatepass") for form in normal_forms(contents)]
        sizes = np.fromiter(map(len, forms), np.int64, len(forms))
        spans[np.searchsorted(positions, part)] = np.stack((end + np.cumsum(sizes) - sizes, sizes), 1)
        end += file.write(b"".join(forms))
    return spans


def _read_form(file: IO[bytes], start: int, size: int) -> str:
    file.seek(start)
    return file.read(size).decode("utf-8", "surrogatepass")


def near_rows(pairs: Rows, texts: Hashes, counts: npt.NDArray[np.uint32], cut: int) -> NearDuplicates:
    """Return which rows have a near copy of a text in an earlier row.

    Args:
        pairs: (k, 2) places where near copies stand first.
        texts: (m,) hashes of the texts of all rows.
        counts: (n,) texts of each row.
        cut: see NearDuplicates.
    """
    positions, numbers = np.unique(pairs.ravel(), return_inverse=True)
    earliest = np.full(len(positions), len(texts))  # place of the first near copy of each
    np.minimum.at(earliest, numbers, pairs[:, ::-1].ravel())
    order = np.argsort(texts[positions])
    near, earliest = texts[positions][order], earliest[order]
    again = np.flatnonzero(is_in(texts, near))
    row_ends = np.cumsum(counts, dtype=np.int64)
    rows = np.searchsorted(row_ends, again, "right")
    first = np.searchsorted(row_ends, earliest[np.searchsorted(near, texts[again])], "right")
    flags = np.zeros(len(counts), bool)
    flags[rows[first < rows]] = True
    return NearDuplicates(flags, near, cut)
