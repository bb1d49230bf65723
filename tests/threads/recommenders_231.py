"""The loss does not decrease, and after some epochs all embeddings are identical.

The poster trains the tutorial's retrieval model on another data set, with the ids of users and items alone. The answers
suspect the data or a hyperparameter.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from .base import Thread, write_csv

THREAD = Thread(
    reference="tensorflow/recommenders#231",
    mistake="The weight decay is so strong that the ids keep only the bias that they share.",
    mended="The loop has no weight decay.",
    command="lossscope doctor dump.npz --log train.csv",
    first="complete-collapse",
)
_USERS, _ITEMS, _TAKEN, _BATCH = 2000, 600, 6, 256


def train(folder: Path, mended: bool) -> None:
    """Write train.csv, an epoch a row as Keras does, and dump.npz: users, items, and who took what."""
    tastes, kinds = torch.randn(_USERS, 8), torch.randn(_ITEMS, 8)
    taken = (tastes @ kinds.T + 0.5 * torch.randn(_USERS, _ITEMS)).topk(_TAKEN, dim=1).indices
    pairs = torch.stack([torch.arange(_USERS).repeat_interleave(_TAKEN), taken.flatten()], 1)
    users, items = nn.Embedding(_USERS, 32), nn.Embedding(_ITEMS, 32)
    bias = nn.Parameter(0.05 * torch.randn(32))
    tables = [*users.parameters(), *items.parameters()]
    optimizer = torch.optim.Adam(tables, lr=0.02, weight_decay=0.0 if mended else 10.0)
    rows = []
    for epoch in range(25):
        losses = []
        for batch in torch.randperm(len(pairs)).split(_BATCH):
            user, item = pairs[batch].T
            logits = (users(user) + bias) @ (items(item) + bias).T
            loss = cross_entropy(logits, torch.arange(len(batch)), reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        rows.append({"epoch": epoch, "loss": sum(losses) / len(losses)})
    write_csv(folder / "train.csv", rows)
    with torch.no_grad():
        first, second = (users.weight + bias).numpy(), (items.weight + bias).numpy()
    np.savez(folder / "dump.npz", users=first, items=second, sides=np.array(["user", "item"]), positives=pairs.numpy())
