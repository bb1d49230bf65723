"""Cached vectors of texts: damaged shards are encoded again, to the same numbers."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.results import numbers_of, using_cache
from tests.sources.text_folders import text_encoder

FILES = {"cache/*/*.safetensors": "safetensors"}
CHECKSUMMED = ("cache/*/*.safetensors",)
SHARE = 0.5  # of the cases of other kinds: most encode
DATA = "passages:train=16,val=4,test=4"


def make(folder: Path) -> None:
    """Write a small BERT, and the cache of its texts: a shard of each side."""
    text_encoder(folder / "model")
    with using_cache(folder / "cache"):
        numbers_of(folder / "model", cache=True, data=DATA)


def read(folder: Path) -> object:
    """Open the model with its cache, which the worker's environment names."""
    return numbers_of(folder / "model", cache=True, data=DATA)
