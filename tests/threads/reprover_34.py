"""The embedding of a premise depends on the other premises of its batch.

The poster runs the README's example with several batch sizes, and each size gives another ranking: the code pads texts
to the longest of their batch, and the model encodes the padding. An answer says that the code drops the attention mask.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import pad_sequence

from .base import Thread

THREAD = Thread(
    reference="lean-dojo/ReProver#34",
    mistake="The model trained with a mask and encodes without: the mean of a text includes its padding.",
    mended="The code passes the mask on.",
    command="lossscope doctor batches.npz alone.npz --same-items --objective ntxent:tau=0.05",
    first="batch-dependent",
)
_TEXTS, _WORDS = 800, 500
Texts = list[Tensor]


def train(folder: Path, mended: bool) -> None:
    """Write batches.npz and alone.npz: states of proofs and their premises, encoded 32 at a time and one by one."""
    premises = [torch.randint(1, _WORDS, (length,)) for length in torch.randint(4, 100, (_TEXTS,)).tolist()]
    states = [premise[torch.randperm(len(premise))[: 3 + len(premise) // 10]] for premise in premises]
    words = nn.Embedding(_WORDS, 48)  # word 0 is the padding
    optimizer = torch.optim.Adam(words.parameters(), lr=1e-2)
    for _ in range(200):
        batch = torch.randperm(_TEXTS)[:64].tolist()
        first, second = (encode(words, [texts[i] for i in batch], True) for texts in (states, premises))
        loss = cross_entropy(first @ second.T / 0.05, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for name, size in (("batches", 32), ("alone", 1)):
        first, second = (_encode_all(words, texts, size, mended) for texts in (states, premises))
        np.savez(folder / f"{name}.npz", queries=first.numpy(), documents=second.numpy())


def encode(words: nn.Embedding, texts: Texts, masked: bool) -> Tensor:
    """Return the normalised mean of the words of each text, (n, 48), with its padding or without."""
    ids = pad_sequence(texts, batch_first=True)
    counted = (ids > 0) if masked else torch.ones_like(ids, dtype=torch.bool)
    return normalize((words(ids) * counted[..., None]).sum(1) / counted.sum(1, keepdim=True), dim=1)


@torch.no_grad()
def _encode_all(words: nn.Embedding, texts: Texts, size: int, masked: bool) -> Tensor:
    return torch.cat([encode(words, texts[i : i + size], masked) for i in range(0, len(texts), size)])
