"""A Hugging Face folder of a text encoder: configuration, tokeniser, weights."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.any_sides import everything_of
from tests.sources.text_folders import text_encoder

FILES = {
    "model/config.json": "json",
    "model/tokenizer.json": "json",
    "model/tokenizer_config.json": "json",
    "model/model.safetensors": "safetensors",
    "model": "folder",
}
CHECKSUMMED = ()
SHARE = 0.5  # of the cases of other kinds: each encodes


def make(folder: Path) -> None:
    """Write a small BERT."""
    text_encoder(folder / "model")


def read(folder: Path) -> object:
    """Encode the built-in passages with it, sweep and evaluate the vectors."""
    return everything_of(folder / "model", data="passages:train=16,val=4,test=4")
