"""A positive becomes a negative of its own query, without a message.

The poster trains an embedder with three hard negatives a query, on rows with one. The trainer draws the missing ones
from the row, and its index is off by one: with one negative the group becomes query, positive, negative, positive,
positive. Training continues.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from .base import Thread

THREAD = Thread(
    reference="modelscope/ms-swift#10068",
    mistake="The trainer draws missing negatives from `group[1:]`, which includes the positive, not from `group[2:]`.",
    mended="It draws them from the negatives.",
    command="lossscope doctor train.jsonl",
    first="positive-as-negative",
)
_ROWS, _WORDS, _WANTED = 400, 300, 3


def train(folder: Path, mended: bool) -> None:
    """Write train.jsonl: the groups that the loss saw."""
    things = torch.randint(_WORDS, (_ROWS, 6))  # words that say what a row is about
    texts = [" ".join(f"w{word}" for word in row) for row in things.tolist()]
    groups = []
    for row, text in enumerate(texts):
        other = texts[(row + 1 + int(torch.randint(_ROWS - 1, ()))) % _ROWS]
        group = [f"what is {text}", f"it is {text}", f"not in this row: {other} {row}"]
        first = 2 if mended else 1
        drawn = torch.randint(len(group) - first, (_WANTED - 1,)) + first
        groups.append([*group, *(group[i] for i in drawn.tolist())])
    embed = torch.nn.EmbeddingBag(10_000, 32)
    optimizer = torch.optim.Adam(embed.parameters(), lr=1e-2)
    for _ in range(60):
        batch = torch.randperm(_ROWS)[:32].tolist()
        vectors = torch.stack([normalize(embed(_ids(groups[row])), dim=1) for row in batch])
        S = torch.einsum("qd,qgd->qg", vectors[:, 0], vectors[:, 1:])
        loss = cross_entropy(20 * S, torch.zeros(len(batch), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for query, positive, *negatives in groups:
            file.write(json.dumps({"query": query, "positive": positive, "negatives": negatives}) + "\n")


def _ids(texts: list[str]) -> Tensor:
    """Return a number for each word, (n, length): rows are repeated to one length."""
    rows = [
        [sum(ord(letter) * 31**i for i, letter in enumerate(word)) % 10_000 for word in text.split()] for text in texts
    ]
    length = max(map(len, rows))
    return torch.tensor([(row * length)[:length] for row in rows])
