"""How long positives and negatives are, in a few numbers: which negatives are far shorter than positives?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .hashes import Flags, Hashes

FAR = 20  # times as long as a text are those beside which it is a fragment
_STEPS = 8  # codes for each doubling of a length
_CODES = 256
_FAR_CODES = int(np.ceil(_STEPS * np.log2(FAR)))
Lengths = npt.NDArray[np.int64]


class TextLengths:
    """Numbers of characters of the positives and negatives of a split: a byte a row, and every letter once."""

    def __init__(self) -> None:
        self._positives, self._negatives = np.zeros(_CODES, np.int64), np.zeros(_CODES, np.int64)
        self._longest = bytearray()  # code of the longest negative of each row, 0 where a row has none
        self._letters: set[int] = set()  # hashes of negatives of one character

    def add(self, positives: Lengths, negatives: Lengths, hashes: Hashes, counts: npt.NDArray[np.int64]) -> None:
        """Add rows.

        Args:
            positives: characters of each positive.
            negatives: characters of each negative.
            hashes: of the negatives.
            counts: (n,) negatives of each row.
        """
        codes = _codes(negatives)
        self._positives += np.bincount(_codes(positives), minlength=_CODES)
        self._negatives += np.bincount(codes, minlength=_CODES)
        longest = np.zeros(len(counts), np.uint8)
        with_some = np.flatnonzero(counts)
        if len(with_some):
            longest[with_some] = np.maximum.reduceat(codes, (np.cumsum(counts) - counts)[with_some])
        self._longest += longest.tobytes()
        self._letters.update(hashes[negatives == 1].tolist())

    @property
    def letters(self) -> Hashes:
        """Hashes of negatives of one character, sorted; none where positives are short, too."""
        if _median(self._positives) < 1 + _FAR_CODES:
            return np.zeros(0, np.int64)
        return np.sort(np.fromiter(self._letters, np.int64, len(self._letters)))

    @property
    def only_fragments(self) -> Flags:
        """(n,) whether every negative of a row is far shorter than the median positive, as the median negative is."""
        longest, limit = np.frombuffer(self._longest, np.uint8), _median(self._positives) - _FAR_CODES
        fragments: Flags = (longest > 0) & (longest <= limit) & (_median(self._negatives) <= limit)
        return fragments


def _codes(lengths: Lengths) -> npt.NDArray[np.int64]:
    """Return 1 for one character, and 8 more for each doubling; empty texts have 1, too."""
    steps: Lengths = (_STEPS * np.log2(lengths.clip(min=1))).astype(np.int64)
    return 1 + steps.clip(max=_CODES - 2)


def _median(histogram: npt.NDArray[np.int64]) -> int:
    """Return the median code; 0 of no texts."""
    counts = np.cumsum(histogram)
    return int(np.searchsorted(counts, (counts[-1] + 1) // 2)) if counts[-1] else 0
