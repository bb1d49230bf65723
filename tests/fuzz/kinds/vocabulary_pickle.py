"""A vocabulary of words as the .pkl of the authors' code."""

from __future__ import annotations

import pickle
import sys
import types
from pathlib import Path

from lossscope.text.vocabulary_files import read_vocabulary
from tests.fuzz.released import vocabulary

FILES = {"words.pkl": "pickle"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write thirty words as an object of `vocab.Vocabulary`."""
    home = types.ModuleType("vocab")
    kind = type("Vocabulary", (), {"__module__": "vocab"})
    home.__dict__["Vocabulary"] = kind
    instance, fields = kind(), vocabulary(30)
    ids = fields["word2idx"]
    assert isinstance(ids, dict)
    instance.__dict__.update({**fields, "idx2word": {row: word for word, row in ids.items()}})
    sys.modules["vocab"] = home
    try:
        (folder / "words.pkl").write_bytes(pickle.dumps(instance, protocol=2))
    finally:
        del sys.modules["vocab"]


def read(folder: Path) -> object:
    """Read it, and the ids of a caption."""
    words = read_vocabulary(folder / "words.pkl")
    return words.to_list(), words.encode("w1 a w2.")
