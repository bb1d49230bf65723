"""Precomputed features: `{split}_ims.npy` and `{split}_caps.txt`, as VSE++ and SCAN keep them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .base import Split
from .formats.feature_rows import TWINS, feature_split, present, read_lines, stem_of

_CAPTIONS = "caps.txt"


@dataclass(frozen=True)
class Precomp:
    """Features (N, d) or (N, R, d) of a folder, read from disk as they are taken, with one caption a line.

    As many lines as rows: one image per caption, kept as it is. Otherwise there must be five lines per row.
    `val` means `dev` where only that exists, and the other way round. `{split}_ids.txt`, if present, names
    the images, one line per image or per caption; otherwise rows are counted.
    dev_first: keep only the first so many captions of dev (0: all); the original code used 5000.
    bytes_captions: captions as Python writes bytes, b'...', which is what ports of VSE++ to Python 3 trained on;
    with it their first word is unknown again.
    Raises InputError for what is missing or does not fit, and naming file and row for features not finite.
    """

    root: Path
    dev_first: int = 0
    bytes_captions: bool = False

    def __post_init__(self) -> None:
        if self.dev_first < 0:
            raise InputError(f"precomp:dev_first must be at least 1, or 0 for all; got {self.dev_first}")

    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have both files, train first."""
        return present(Path(self.root), _CAPTIONS)

    def split(self, name: str) -> Split:
        """The split of that name, its features left on disk."""
        stem = stem_of(name, Path(self.root), _CAPTIONS)
        texts = Path(self.root) / f"{stem}_{_CAPTIONS}"
        captions = read_lines(texts)
        if self.bytes_captions:
            captions = [repr(caption.encode("utf-8")) for caption in captions]
        first = self.dev_first if stem in TWINS else 0
        return feature_split(name, Path(self.root) / stem, texts, captions, first)
