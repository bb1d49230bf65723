"""Rows of texts in JSON lines, CSV and parquet, each as a data set."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd

from tests.fuzz.results import texts_of

FILES = {"train.jsonl": "jsonl", "val.csv": "csv", "test.parquet": "parquet"}
CHECKSUMMED = ()
ROWS = [{"query": f"query {n} é", "positives": [f"p{n}", f"r{n}"], "negatives": [f"n{n}", "x"]} for n in range(6)]


def make(folder: Path) -> None:
    """Write a few rows."""
    lines = [json.dumps({**row, "id": f"id{n}"}) for n, row in enumerate(ROWS)]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open(folder / "val.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["query", "positives", "negatives"])
        table.writerows([row["query"], json.dumps(row["positives"]), json.dumps(row["negatives"])] for row in ROWS)
    pd.DataFrame(ROWS).to_parquet(folder / "test.parquet", write_page_checksum=True)


def read(folder: Path) -> object:
    """Read all of it."""
    return texts_of(f"texts:file={folder}/train.jsonl,val={folder}/val.csv,test={folder}/test.parquet")
