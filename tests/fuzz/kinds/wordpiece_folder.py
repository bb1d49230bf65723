"""A tokeniser of BERT as vocab.txt with tokenizer_config.json."""

from __future__ import annotations

import json
from pathlib import Path

from lossscope.text.subwords import Subwords

FILES = {"words/vocab.txt": "text", "words/tokenizer_config.json": "json"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write letters and a few words."""
    rows = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *(f"##{x}" for x in "abcdefgh"), "dog", "runs"]
    (folder / "words").mkdir()
    (folder / "words" / "vocab.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    settings = {"model_max_length": 40, "do_lower_case": True, "pad_token": "[PAD]", "tokenizer_class": "BertTokenizer"}
    (folder / "words" / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def read(folder: Path) -> object:
    """Read it, and the ids of captions."""
    words = Subwords.from_folder(folder / "words")
    return [words.encode(text) for text in ("A dog runs.", "bad cafe", "")], len(words)
