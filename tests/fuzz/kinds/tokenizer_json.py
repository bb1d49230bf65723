"""A tokeniser of CLIP as tokenizer.json with tokenizer_config.json, as a Hugging Face folder has it."""

from __future__ import annotations

from pathlib import Path

from lossscope.text.subwords import Subwords
from lossscope.text.tokeniser_folder import find_padding
from tests.authors.test_hugging_face import write_tokeniser

FILES = {"words/tokenizer.json": "json", "words/tokenizer_config.json": "json"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write it as transformers saves it."""
    write_tokeniser(folder / "words")


def read(folder: Path) -> object:
    """Read it, and the ids of captions."""
    words = Subwords.from_folder(folder / "words")
    return [words.encode(text) for text in ("A dog runs.", "bad cafe", "")], len(words), find_padding(folder / "words")
