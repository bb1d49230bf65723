"""70,000 documents, 200,000 questions, batches of 32,000: what if a batch has a document several times?

The loss takes each other document of a batch as a negative. Each document has several questions, so that a large batch
has a question's own document again and again. Does each copy count?
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

from .base import Thread, parameters, tower, views

THREAD = Thread(
    reference="huggingface/sentence-transformers#3189",
    mistake="Batches are random among 2,000 pairs of 700 documents: each has the document of a question again.",
    mended="Each document is one candidate for all its questions, and a batch has it once.",
    command="lossscope doctor dump.npz --objective ntxent:tau=0.05 --batch-size 320",
    first="duplicates",
)
_PAIRS, _DOCUMENTS, _BATCH = 2000, 700, 320  # a hundredth


def train(folder: Path, mended: bool) -> None:
    """Write dump.npz: a question and its document in each row, with the documents' texts."""
    documents, questions = views(_DOCUMENTS)
    owner = torch.randint(_DOCUMENTS, (_PAIRS,))
    questions = questions[owner] + 0.1 * torch.randn(_PAIRS, questions.shape[1])
    question_tower, document_tower = tower(40), tower(48)
    optimizer = torch.optim.Adam(parameters(question_tower, document_tower), lr=1e-3)
    for _ in range(200):
        batch = torch.randperm(_PAIRS)[:_BATCH]
        candidates, labels = owner[batch], torch.arange(_BATCH)
        if mended:
            candidates, labels = owner[batch].unique(return_inverse=True)
        first = normalize(question_tower(questions[batch]), dim=1)
        second = normalize(document_tower(documents[candidates]), dim=1)
        loss = cross_entropy(20 * first @ second.T, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    of_row = torch.arange(_DOCUMENTS) if mended else owner  # document of each row of the second side
    positive = owner if mended else torch.arange(_PAIRS)  # row of each question's document
    with torch.no_grad():
        first, second = question_tower(questions), document_tower(documents[of_row])
    np.savez(
        folder / "dump.npz",
        queries=normalize(first, dim=1).numpy(),
        documents=normalize(second, dim=1).numpy(),
        positives=torch.stack([torch.arange(_PAIRS), positive], 1).numpy(),
        document_text=np.array([f"document {row}" for row in of_row.tolist()]),
    )
