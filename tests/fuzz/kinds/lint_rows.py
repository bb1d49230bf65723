"""Rows of texts, as `lossscope data lint` reads them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fuzz.commands import run_command

FILES = {"train.jsonl": "jsonl"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a few rows."""
    rows = [{"query": f"query {n} é", "positive": f"p{n}", "negatives": [f"n{n}", f"p{n % 3}"]} for n in range(6)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read(folder: Path) -> object:
    """Lint them."""
    return run_command("data", "lint", "train.jsonl", "--format", "json")
