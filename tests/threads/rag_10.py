"""In 7.5 % of 14,292 rows a mined negative is the positive again, without an error.

The miner leaves out the chunk that answers a query by its id, but the corpus has the same text under another id. Here
the second chunk has one more full stop, so that a comparison of the texts does not find it either.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn.functional import normalize

from .base import Thread

THREAD = Thread(
    reference="Dayallenr/RAG#10",
    mistake="The miner leaves out the positive by its id, and the corpus has 150 of 2,000 chunks twice.",
    mended="The corpus has each chunk once.",
    command="lossscope data lint train.jsonl",
    first="near-copies",
)
_CHUNKS, _TWICE, _WORDS, _LENGTH, _NEGATIVES = 2000, 150, 600, 30, 3


def train(folder: Path, mended: bool) -> None:
    """Write train.jsonl: query, positive, and the nearest chunks with another id."""
    words = torch.randint(_WORDS, (_CHUNKS, _LENGTH))
    chunks = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    text_of = torch.cat([torch.arange(_CHUNKS), torch.arange(0 if mended else _TWICE)])  # row of words of each id
    corpus = chunks if mended else chunks + [f"{chunk}." for chunk in chunks[:_TWICE]]
    vectors = torch.randn(_WORDS, 64)
    asked = words.gather(1, torch.rand(words.shape).argsort(1)[:, :8])
    S = normalize(vectors[asked].mean(1), dim=1) @ normalize(vectors[words].mean(1), dim=1)[text_of].T
    S.fill_diagonal_(-1)  # the id of the positive
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for row, negatives in enumerate(S.topk(_NEGATIVES).indices.tolist()):
            query = "where is " + " ".join(f"w{word}" for word in asked[row].tolist())
            texts = {"query": query, "positive": chunks[row], "negatives": [corpus[i] for i in negatives]}
            file.write(json.dumps(texts) + "\n")
