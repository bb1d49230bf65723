"""Precomputed features with captions as ids, in BFAN's layout: `{split}_ims.npy` and `{split}_precaps.txt`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lossscope.errors import InputError
from lossscope.text.vocabulary import Vocabulary
from lossscope.text.vocabulary_files import read_vocabulary

from .formats.feature_rows import FeatureDataset, read_lines
from .formats.redundant_rows import Redundant

_MAX_DIGITS = 18  # of an id
_Ids = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Precaps(FeatureDataset):
    """Features of a folder as in precomp; each line of `{split}_precaps.txt` is a caption, ids between commas.

    The text of a caption is its words joined by spaces, without `<start>` and `<end>`; its tokens are the ids.
    Raises InputError for files that are missing or do not fit, for ids that the vocabulary lacks, and for a file in
    which some captions have `<start>` and `<end>` and some have not. Source: Liu et al. 2019 (BFAN).
    """

    root: Path  # folder of the features
    vocab: Path  # .json or .pkl file of the vocabulary that the ids belong to
    ends: bool = False  # add <start> and <end> where the file has none; the original adds nothing
    dev_first: int = 0  # number of captions of dev to keep; 0: all; the original keeps 5000
    redundant: Redundant = "auto"  # equal rows in fives are one image; true: the first of every five, false: never

    captions_name: ClassVar[str] = "precaps.txt"

    def read_captions(self, file: Path) -> tuple[list[str], _Ids]:
        """Return the captions of a file, and their ids."""
        vocabulary = read_vocabulary(self.vocab)
        ids = [_parse_ids(line, f"line {row} of {file}", vocabulary) for row, line in enumerate(read_lines(file), 1)]
        return [_text(row, vocabulary) for row in ids], _check_ends(ids, vocabulary, file, self.ends)


def _parse_ids(line: str, where: str, vocabulary: Vocabulary) -> list[int]:
    pieces = line.split(",")
    if not all(piece.strip().isdecimal() and len(piece) <= _MAX_DIGITS for piece in pieces):
        raise InputError(f"{where} must be ids between commas; got {line[:60]!r}")
    ids = [int(piece) for piece in pieces]
    if max(ids) >= len(vocabulary):
        raise InputError(f"ids of {where} must be below {len(vocabulary)}, the vocabulary's size; got {max(ids)}")
    return ids


def _text(ids: Sequence[int], vocabulary: Vocabulary) -> str:
    ends = {vocabulary.ids["<start>"], vocabulary.ids["<end>"]}
    return " ".join(vocabulary.words[id] for id in ids if id not in ends)


def _check_ends(ids: list[list[int]], vocabulary: Vocabulary, file: Path, add: bool) -> _Ids:
    """Return ids with `<start>` and `<end>` where all captions have them, or `add` is set.

    Raises InputError when some captions have them and some have not.
    """
    start, end = vocabulary.ids["<start>"], vocabulary.ids["<end>"]
    with_ends = [len(row) > 1 and row[0] == start and row[-1] == end for row in ids]
    without_ends = [start not in row and end not in row for row in ids]
    if all(with_ends):
        return ids
    if not all(without_ends):
        row = next(i for i, flag in enumerate(without_ends if without_ends[0] else with_ends) if not flag)
        form = f"begin with id {start} and end with {end}, or none of them have either"
        raise InputError(f"captions of {file} must all {form}; got a mixture: line {row + 1} differs from line 1")
    return [[start, *row, end] for row in ids] if add else ids
