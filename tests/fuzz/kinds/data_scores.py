"""Pairs with scores, and rows of passages, each as a data set."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from tests.fuzz.results import texts_of

FILES = {"sts.csv": "csv", "sts.parquet": "parquet", "passages.jsonl": "jsonl"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few rows."""
    rows = [(f"query {n // 2} é", f"text {n}", 4.5 - (n % 2) * 2) for n in range(12)]
    table = pd.DataFrame(rows, columns=["sentence1", "sentence2", "score"])
    table.to_csv(folder / "sts.csv", index=False)
    table.to_parquet(folder / "sts.parquet", write_page_checksum=True)
    passages = [{"query": f"q{n}", "positive_passages": [{"docid": str(n), "title": "t", "text": "x"}]} for n in "ab"]
    (folder / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in passages))


def read(folder: Path) -> object:
    """Read all of it."""
    files = (f"{folder}/sts.csv", f"{folder}/sts.parquet", f"{folder}/passages.jsonl")
    return [texts_of(f"texts:file={file},val_share=0,test_share=0") for file in files]
