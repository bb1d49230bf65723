"""Precomputed features in the layout of VSE++ and SCAN: `{split}_ims.npy` and `{split}_caps.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .formats.feature_rows import FeatureDataset, read_lines
from .formats.redundant_rows import Redundant


@dataclass(frozen=True)
class Precomp(FeatureDataset):
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

    captions_name: ClassVar[str] = "caps.txt"

    def read_captions(self, file: Path) -> tuple[list[str], None]:
        """Return the captions of a file."""
        captions = read_lines(file)
        return [repr(caption.encode("utf-8")) for caption in captions] if self.bytes_captions else captions, None
