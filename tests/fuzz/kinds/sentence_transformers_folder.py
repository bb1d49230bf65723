"""A sentence-transformers folder: its modules and their configurations."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.results import numbers_of
from tests.sources.test_folders import texts

FILES = {
    "model/modules.json": "json",
    "model/*config*.json": "json",
    "model/1_Pooling/config.json": "json",
    "model": "folder",
}
CHECKSUMMED = ()
SHARE = 0.5  # of the cases of other kinds: each embeds


def make(folder: Path) -> None:
    """Write a small BERT with mean pooling."""
    texts(folder / "model")


def read(folder: Path) -> object:
    """Open it on the built-in scenes."""
    return numbers_of(folder / "model", data="scenes:train=6,val=2,test=2,size=16")
