"""The loss falls and the top-k within the batch rises, but the top-k among all candidates falls.

The metrics of a retrieval model of users and items disagree. The answer advises batches of 1,024 or more and embeddings
of two axes, and says that accidental hits matter with few candidates: the batch has a query's item again, as its
negative. In this loop a mask for them changes little.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .base import Thread, write_csv

THREAD = Thread(
    reference="tensorflow/recommenders#537",
    mistake="Ids have embeddings without weight decay, and the model memorises who took what.",
    mended="The loop has a weight decay of 1.",
    command="lossscope doctor --log train.csv",
    first="overfitting",
)
_USERS, _ITEMS, _TAKEN, _BATCH = 600, 150, 15, 1024
_ALL, _WITHIN = "factorized_top_k/top_30_categorical_accuracy", "batch_top_100_categorical_accuracy"


def train(folder: Path, mended: bool) -> None:
    """Write train.csv, as Keras' CSVLogger does."""
    seen, held_out = _taken()
    users, items = nn.Embedding(_USERS, 32), nn.Embedding(_ITEMS, 32)
    for table in (users, items):
        nn.init.normal_(table.weight, std=0.05)
    decay = 1.0 if mended else 0.0
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=1e-2, weight_decay=decay)
    rows = []
    for epoch in range(20):
        losses, hits = [], []
        for batch in torch.randperm(len(seen))[: len(seen) // _BATCH * _BATCH].split(_BATCH):
            user, item = seen[batch].T
            logits = users(user) @ items(item).T
            loss = cross_entropy(logits, torch.arange(len(batch)), reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits.append(_hits(logits.detach(), torch.arange(len(batch)), 100))
        with torch.no_grad():
            S = users.weight @ items.weight.T
        row = {"epoch": epoch, "loss": sum(losses) / len(losses), _WITHIN: sum(hits) / len(hits)}
        for prefix, (user, item) in (("", seen.T), ("val_", held_out.T)):
            row[prefix + _ALL] = _hits(S[user], item, 30)
        rows.append(row)
    write_csv(folder / "train.csv", rows)


def _hits(logits: Tensor, labels: Tensor, k: int) -> float:
    return float(((logits > logits.gather(1, labels[:, None])).sum(1) < k).float().mean())


def _taken() -> tuple[Tensor, Tensor]:
    """Return rows of a user and an item, of the training and held out: popularity falls as Zipf's law says."""
    tastes, kinds = torch.randn(_USERS, 4), torch.randn(_ITEMS, 4)
    logits = tastes @ kinds.T - 0.5 * torch.arange(1, _ITEMS + 1).float().log()
    taken = torch.multinomial(logits.softmax(1), _TAKEN)
    rows = torch.stack([torch.arange(_USERS).repeat_interleave(_TAKEN), taken.flatten()], 1)
    kept = torch.arange(len(rows)) % _TAKEN < _TAKEN - 3
    return rows[kept], rows[~kept]
