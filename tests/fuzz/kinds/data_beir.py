"""Documents, queries and judgements in the format of BEIR, with a TREC run."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.test_beir import write
from tests.fuzz.results import texts_of

FILES = {"*.jsonl": "jsonl", "qrels/*.tsv": "text", "bm25.run": "text", "qrels": "folder"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few items."""
    write(folder)


def read(folder: Path) -> object:
    """Read all of it."""
    return texts_of(f"beir:root={folder},run={folder}/bm25.run,corpus=all")
