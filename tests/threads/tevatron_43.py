"""R@5 is 64.3 with negatives that the poster mined, and 75.8 with the published ones.

The poster trains a retriever with the hard negatives that its authors published, and it reaches their numbers. With
negatives from its own ranking (30 of the 200 highest, without the one annotated passage) it is far worse.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from .base import Thread, parameters, tower, views

THREAD = Thread(
    reference="texttron/tevatron#43",
    mistake="Negatives are the highest passages except the annotated one; some of them answer the question, too.",
    mended="Negatives come from below rank 40, where few passages answer the question.",
    command="lossscope doctor dump.npz --objective ntxent:tau=0.05 --batch-size 64",
    first="hard-negatives-too-hard",
)
_QUESTIONS, _SAYING_THE_SAME, _MINED = 2000, 12, 8


def train(folder: Path, mended: bool) -> None:
    """Write dump.npz: embeddings, the annotated passage of each question, and its mined negatives."""
    questions, facts = views(_QUESTIONS)
    fact_of = torch.arange(_QUESTIONS).repeat_interleave(_SAYING_THE_SAME)  # passages that say it in other words
    passages = facts[fact_of] + 0.3 * torch.randn(len(fact_of), facts.shape[1])
    annotated = torch.arange(_QUESTIONS) * _SAYING_THE_SAME
    towers = tower(48), tower(40)
    _fit(towers, questions, passages, annotated)
    mined = _mine(towers, questions, passages, annotated, 40 if mended else 0)
    first, second = _encode(towers, questions, passages)
    np.savez(
        folder / "dump.npz",
        queries=first.numpy(),
        documents=second.numpy(),
        positives=torch.stack([torch.arange(_QUESTIONS), annotated], 1).numpy(),
        negatives=mined.numpy(),
    )


def _encode(towers: tuple[nn.Module, nn.Module], questions: Tensor, passages: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        return normalize(towers[0](questions), dim=1), normalize(towers[1](passages), dim=1)


def _mine(
    towers: tuple[nn.Module, nn.Module], questions: Tensor, passages: Tensor, annotated: Tensor, skip: int
) -> Tensor:
    """Return (n, k) passages, drawn from the 20 highest below the first `skip`."""
    first, second = _encode(towers, questions, passages)
    S = first @ second.T
    S[torch.arange(len(S)), annotated] = -torch.inf
    ranked = S.topk(20 + skip, dim=1).indices[:, skip:]
    chosen = torch.stack([torch.randperm(ranked.shape[1])[:_MINED] for _ in range(len(ranked))])
    return ranked.gather(1, chosen)


def _fit(towers: tuple[nn.Module, nn.Module], questions: Tensor, passages: Tensor, annotated: Tensor) -> None:
    """Train with the passages of the batch."""
    optimizer = torch.optim.Adam(parameters(*towers), lr=1e-3)
    for _ in range(150):
        batch = torch.randperm(len(questions))[:64]
        first = normalize(towers[0](questions[batch]), dim=1)
        second = normalize(towers[1](passages[annotated[batch]]), dim=1)
        loss = cross_entropy(20 * first @ second.T, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
