"""The correction of the sampling probability has the wrong sign, and retrieval is worse with it than without.

A model of users and items takes the other items of a batch as negatives, and popular items are often among them. The
correction of its logits is − log q, with q the probability of an item in a batch; the code adds log q. Others report
worse results with it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from .base import Thread

THREAD = Thread(
    reference="tensorflow/recommenders#219",
    mistake="The logits are `S + log(q)`.",
    mended="The logits are `S − log(q)`.",
    command="lossscope doctor dump.npz --objective ntxent:tau=0.1 --batch-size 256",
    first="",
    miss="no check reads corrections of logits, and both models separate their training pairs. With held-out items, "
    "recall@20 is 0.03 with the mistake, 0.09 without a correction, and 0.47 with the right one.",
)
_USERS, _ITEMS, _TAKEN, _BATCH = 1500, 600, 18, 256


def train(folder: Path, mended: bool) -> None:
    """Write dump.npz: users, the items that five took or more, and who took what."""
    rows = _taken()
    counts = torch.bincount(rows[:, 1], minlength=_ITEMS)
    log_q = (counts.clamp(min=1) / len(rows)).log()
    users, items = nn.Embedding(_USERS, 32), nn.Embedding(_ITEMS, 32)
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=1e-2)
    for _ in range(10):
        for batch in torch.randperm(len(rows)).split(_BATCH):
            user, item = rows[batch].T
            S = normalize(users(user), dim=1) @ normalize(items(item), dim=1).T / 0.1
            logits = S - log_q[item] if mended else S + log_q[item]
            loss = cross_entropy(logits, torch.arange(len(batch)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    kept = counts >= 5
    rows = rows[kept[rows[:, 1]]]
    rows[:, 1] = (kept.cumsum(0) - 1)[rows[:, 1]]
    with torch.no_grad():
        first, second = normalize(users.weight, dim=1).numpy(), normalize(items.weight[kept], dim=1).numpy()
    np.savez(folder / "dump.npz", users=first, items=second, sides=np.array(["user", "item"]), positives=rows.numpy())


def _taken() -> Tensor:
    """Return (n, 2) rows of a user and an item: tastes meet kinds, and popularity falls as Zipf's law says."""
    tastes, kinds = torch.randn(_USERS, 8), torch.randn(_ITEMS, 8)
    logits = 0.9 * tastes @ kinds.T - torch.arange(1, _ITEMS + 1).float().log()
    taken = torch.multinomial(logits.softmax(1), _TAKEN)
    return torch.stack([torch.arange(_USERS).repeat_interleave(_TAKEN), taken.flatten()], 1)
