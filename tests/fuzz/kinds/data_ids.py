"""Rows of ids, and the texts of their documents and queries, as a data set."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fuzz.results import texts_of

FILES = {"rows.jsonl": "jsonl", "corpus.tsv": "text", "queries.jsonl": "jsonl"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few rows, and the texts that they name."""
    rows = [{"qid": n, "pos": [n], "neg": {"bm25": [n + 1], "m": [{"pid": n + 2, "ce-score": 0.5}]}} for n in range(6)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "corpus.tsv").write_text("".join(f"{n}\tpassage {n} é\n" for n in range(8)), encoding="utf-8")
    queries = [{"_id": str(n), "text": f"query {n}"} for n in range(6)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))


def read(folder: Path) -> object:
    """Read all of it."""
    spec = f"texts:file={folder}/rows.jsonl,corpus={folder}/corpus.tsv,queries={folder}/queries.jsonl"
    return texts_of(f"{spec},val_share=0,test_share=0")
