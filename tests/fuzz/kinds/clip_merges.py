"""The byte pairs of CLIP, packed (--vocabulary bpe_simple_vocab_16e6.txt.gz)."""

from __future__ import annotations

from pathlib import Path

from lossscope.text.subwords import Subwords
from tests.authors.clip_files import write_merges

FILES = {"merges.txt.gz": "picture"}
CHECKSUMMED = ("merges.txt.gz",)


def make(folder: Path) -> None:
    """Write a few byte pairs."""
    write_merges(folder / "merges.txt.gz")


def read(folder: Path) -> object:
    """Read them, and the ids of captions."""
    words = Subwords.from_merges(folder / "merges.txt.gz")
    return [words.encode(text) for text in ("A dog runs.", "bad cafe", "")], len(words)
