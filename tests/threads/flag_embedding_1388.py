"""Mined hard negatives are single characters.

The poster runs `hn_mine.py` over 120,000 rows of a query and a positive. Its output has five hard negatives a query,
and each is one character, although the data are sentences.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from .base import Thread

THREAD = Thread(
    reference="FlagOpen/FlagEmbedding#1388",
    mistake="`pos` is a text, not a list of texts, and the miner takes its letters for a corpus.",
    mended="`pos` is a list.",
    command="lossscope data lint mined.jsonl",
    first="short-text",
)
_ROWS, _NEGATIVES, _RANKS = 300, 5, (2, 30)


def train(folder: Path, mended: bool) -> None:
    """Write mined.jsonl: query, pos, and neg as the miner finds them."""
    words = torch.randint(0xAC00, 0xD7A3, (400, 2))  # syllables of Hangul, two a word
    vocabulary = ["".join(map(chr, word)) for word in words.tolist()]
    rows = []
    for texts in torch.randint(len(vocabulary), (_ROWS, 18)).tolist():
        positive = " ".join(vocabulary[word] for word in texts)
        rows.append({"query": " ".join(vocabulary[word] for word in texts[:6]), "pos": positive})
    for row in rows if mended else ():
        row["pos"] = [row["pos"]]
    mined = [{**row, "neg": negatives} for row, negatives in zip(rows, mine(rows), strict=True)]
    lines = [json.dumps(row, ensure_ascii=False) for row in mined]
    (folder / "mined.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def mine(rows: list[dict[str, str | list[str]]]) -> list[list[str]]:
    """Return the negatives of each row: texts of the corpus of a high rank, by the share of common letters."""
    corpus = sorted({text for row in rows for text in row["pos"]})
    letters = [set(text) for text in corpus]
    found = []
    for row in rows:
        query = set(row["query"])
        scores = [len(query & text) / len(query | text) for text in letters]
        ranking = sorted(range(len(corpus)), key=lambda i: -scores[i])[slice(*_RANKS)]
        kept = [corpus[i] for i in ranking if corpus[i] not in row["pos"]]
        found.append([kept[i] for i in torch.randperm(len(kept))[:_NEGATIVES].tolist()])
    return found
