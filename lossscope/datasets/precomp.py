"""Precomputed features in the layout of VSE++ and SCAN: `{split}_ims.npy` and `{split}_caps.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .base import Split
from .formats.feature_rows import ALIASES, available_splits, find_stem, read_feature_split, read_lines
from .formats.redundant_rows import Redundant

_CAPTIONS = "caps.txt"


@dataclass(frozen=True)
class Precomp:
    """Features (N, d) or (N, R, d) of a folder, read from disk when they are used, with one caption a line.

    A split has five captions per image, or one where there are as many lines as rows. Where such rows are equal in
    fives, as in the first files of VSE++, they are one image with five captions, as its authors evaluate them
    (`redundant`). `val` means `dev` where only that exists, and vice versa. `{split}_ids.txt`, if present, has the ids
    of the images, one line per image or per caption; otherwise the ids are row numbers.

    bytes_captions is for models trained by code that opened the captions as bytes and took str() of them: a caption
    then reads b'...', and its first word is unknown. The authors' own code, in either Python, reads texts.
    Raises InputError for files that are missing or do not fit, naming file and row for features that are not finite.
    """

    root: Path  # folder of the features
    dev_first: int = 0  # number of captions of dev to keep; 0: all; the original keeps 5000
    bytes_captions: bool = False  # captions as Python prints bytes, b'...'
    redundant: Redundant = "auto"  # equal rows in fives are one image; true: the first of every five, false: never

    def __post_init__(self) -> None:
        if self.dev_first < 0:
            raise InputError(f"precomp:dev_first must be at least 1, or 0 for all; got {self.dev_first}")

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that have both files, train first."""
        return available_splits(Path(self.root), _CAPTIONS)

    def split(self, name: str) -> Split:
        """Return the split of a name, its features left on disk."""
        stem = find_stem(name, Path(self.root), _CAPTIONS)
        file = Path(self.root) / f"{stem}_{_CAPTIONS}"
        captions = read_lines(file)
        if self.bytes_captions:
            captions = [repr(caption.encode("utf-8")) for caption in captions]
        first = self.dev_first if stem in ALIASES else 0
        return read_feature_split(name, Path(self.root) / stem, file, captions, first, redundant=self.redundant)
