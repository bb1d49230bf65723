"""The loss becomes 0: is that normal?

The poster fine-tunes an embedder with batches of 4, five negatives each, and a temperature of 0.02; the loss goes to 0.
A language model wrote the positive of each sentence from it; its negatives are sentences of other texts with a
similarity below 0.4. The answer is that the negatives are too easy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

from .base import Thread, parameters, tower, views

THREAD = Thread(
    reference="FlagOpen/FlagEmbedding#1094",
    mistake="Negatives are sentences of other texts; their subject alone tells them apart.",
    mended="Negatives include sentences of the same text.",
    command="lossscope doctor dump.npz --objective ntxent:tau=0.02 --batch-size 4",
    first="batch-ceiling",
)
_TEXTS, _SENTENCES, _BATCH, _NEGATIVES = 250, 8, 4, 5


def train(folder: Path, mended: bool) -> None:
    """Write dump.npz: each sentence, its positive, and the negatives that it was trained with."""
    subjects, subjects_again = (x.repeat_interleave(_SENTENCES, 0) for x in views(_TEXTS, seed=1, noise=0.0))
    details, details_again = views(_TEXTS * _SENTENCES)
    sentences, positives = subjects + 0.2 * details, subjects_again + 0.2 * details_again
    text_of = torch.arange(_TEXTS).repeat_interleave(_SENTENCES)
    n = len(sentences)
    negatives = torch.randint(n, (n, _NEGATIVES))
    if mended:
        negatives = text_of[:, None] * _SENTENCES + torch.randint(_SENTENCES, (n, _NEGATIVES))
    itself = negatives == torch.arange(n)[:, None]
    negatives = torch.where(itself, (negatives + 1) % n, negatives)
    encoders = tower(48), tower(40)
    optimizer = torch.optim.Adam(parameters(*encoders), lr=1e-3)
    for _ in range(2000):
        batch = torch.randperm(n)[:_BATCH]
        candidates = torch.cat([batch, negatives[batch].flatten()])
        first = normalize(encoders[0](sentences[batch]), dim=1)
        second = normalize(encoders[1](positives[candidates]), dim=1)
        loss = cross_entropy(first @ second.T / 0.02, torch.arange(_BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        first, second = (
            normalize(encoder(x), dim=1) for encoder, x in zip(encoders, (sentences, positives), strict=True)
        )
    pairs = np.stack([np.arange(n)] * 2, 1)
    arrays = {"queries": first.numpy(), "documents": second.numpy(), "positives": pairs, "negatives": negatives.numpy()}
    np.savez(folder / "dump.npz", **arrays)
