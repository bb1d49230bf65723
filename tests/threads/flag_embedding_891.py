"""Batches of 4 with 8 passages a query: what is the loss of guessing?

The poster trains an embedder with a batch size of 4 and groups of 8 passages, so that a query has 32 candidates. A
guess among them has a loss of 3.47; a loss of 1.4 belongs to a model that has learnt, although it is log 4.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy, normalize

from .base import Thread, parameters, tower, views

THREAD = Thread(
    reference="FlagOpen/FlagEmbedding#891",
    mistake="The loop shuffles queries and their groups of passages separately.",
    mended="The loop shuffles them together. The task is so hard that the loss ends near log 4.",
    command="lossscope doctor --log trainer_state.json",
    first="no-learning",
)
_TEXTS, _BATCH, _GROUP, _EVERY = 2000, 4, 8, 10


def train(folder: Path, mended: bool) -> None:
    """Write trainer_state.json, as transformers does."""
    queries, passages = views(_TEXTS, latent=24, noise=0.7)
    encoders = tower(48), tower(40)
    optimizer = torch.optim.Adam(parameters(*encoders), lr=5e-3)
    history, losses = [], []
    for step in range(1, 1501):
        rows = torch.randint(_TEXTS, (_BATCH,))
        positives = rows if mended else torch.randint(_TEXTS, (_BATCH,))
        groups = torch.cat([positives[:, None], torch.randint(_TEXTS, (_BATCH, _GROUP - 1))], 1).flatten()
        first, second = normalize(encoders[0](queries[rows]), dim=1), normalize(encoders[1](passages[groups]), dim=1)
        loss = cross_entropy(first @ second.T / 0.2, _GROUP * torch.arange(_BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % _EVERY == 0:
            mean, epoch = sum(losses[-_EVERY:]) / _EVERY, _BATCH * step / _TEXTS
            history.append({"loss": round(mean, 4), "learning_rate": 5e-3, "epoch": epoch, "step": step})
    state = {"global_step": 1500, "train_batch_size": _BATCH, "log_history": history}
    (folder / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")
