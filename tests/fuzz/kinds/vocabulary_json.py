"""A vocabulary of words as .json."""

from __future__ import annotations

import json
from pathlib import Path

from lossscope.text.vocabulary_files import read_vocabulary
from tests.fuzz.released import vocabulary

FILES = {"words.json": "json"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write thirty words."""
    (folder / "words.json").write_text(json.dumps(vocabulary(30)), encoding="utf-8")


def read(folder: Path) -> object:
    """Read it, and the ids of a caption."""
    words = read_vocabulary(folder / "words.json")
    return words.to_list(), words.encode("w1 a w2.")
