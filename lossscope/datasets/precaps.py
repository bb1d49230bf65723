"""Precomputed features with captions as ids of a vocabulary: `{split}_ims.npy` and `{split}_precaps.txt`, as BFAN's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError
from lossscope.text.vocabulary import Vocabulary, read_vocabulary

from .base import Split
from .formats.feature_rows import TWINS, feature_split, present, read_lines, stem_of

_CAPTIONS = "precaps.txt"
_Ids = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Precaps:
    """Features of a folder as in precomp; each line of `{split}_precaps.txt` is a caption, ids between commas.

    vocab: the .json or .pkl file the ids were made with. A caption's text is its words joined by spaces, without
    `<start>` and `<end>`; its tokens are the ids. ends: add `<start>` and `<end>` where the file has none; the
    original adds nothing. dev_first: as in precomp.
    Raises InputError for what is missing or does not fit, for ids that the vocabulary lacks, and for a file in which
    some captions have their ends and some have not. Source: Liu et al. 2019 (BFAN).
    """

    root: Path
    vocab: Path
    ends: bool = False
    dev_first: int = 0

    def __post_init__(self) -> None:
        if self.dev_first < 0:
            raise InputError(f"precaps:dev_first must be at least 1, or 0 for all; got {self.dev_first}")

    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have both files, train first."""
        return present(Path(self.root), _CAPTIONS)

    def split(self, name: str) -> Split:
        """The split of that name, its features left on disk."""
        stem = stem_of(name, Path(self.root), _CAPTIONS)
        texts = Path(self.root) / f"{stem}_{_CAPTIONS}"
        words = read_vocabulary(self.vocab)
        ids = [_ids(line, f"line {row} of {texts}", words) for row, line in enumerate(read_lines(texts), 1)]
        captions = [_text(row, words) for row in ids]
        tokens = _ended(ids, words, texts, self.ends)
        first = self.dev_first if stem in TWINS else 0
        return feature_split(name, Path(self.root) / stem, texts, captions, first, tokens)


def _ids(line: str, where: str, words: Vocabulary) -> list[int]:
    pieces = line.split(",")
    if not all(piece.strip().isdecimal() for piece in pieces):
        raise InputError(f"{where} must be ids between commas; got {line[:60]!r}")
    ids = [int(piece) for piece in pieces]
    if max(ids) >= len(words):
        raise InputError(f"ids of {where} must be below {len(words)}, the vocabulary's size; got {max(ids)}")
    return ids


def _text(ids: Sequence[int], words: Vocabulary) -> str:
    ends = {words.ids["<start>"], words.ids["<end>"]}
    return " ".join(words.words[id] for id in ids if id not in ends)


def _ended(ids: list[list[int]], words: Vocabulary, texts: Path, add: bool) -> _Ids:
    start, end = words.ids["<start>"], words.ids["<end>"]
    whole = [len(row) > 1 and row[0] == start and row[-1] == end for row in ids]
    bare = [start not in row and end not in row for row in ids]
    if all(whole):
        return ids
    if not all(bare):
        row = next(i for i, flag in enumerate(bare if bare[0] else whole) if not flag)
        wanted = f"begin with id {start} and end with {end}, or none of them hold either"
        raise InputError(f"captions of {texts} must all {wanted}; got a mixture: line {row + 1} differs from line 1")
    return [[start, *row, end] for row in ids] if add else ids
