"""The loss is NaN for an anchor without a positive.

SupCon's loss of four items with the labels 0, 1, 1, 3 is NaN, 37, 37, NaN: an item alone in its class has no positive,
and the mean over its positives divides by 0.
"""

from __future__ import annotations

from pathlib import Path

from .base import Thread

THREAD = Thread(
    reference="HobbitLong/SupContrast#141",
    mistake="The mean over the positives of an anchor divides by their number, which may be 0.",
    mended="The mean leaves out anchors without a positive.",
    command="lossscope check ./losses.py:SupConLoss --processes 1",
    first="queries without a positive",
)
_LOSS = """from dataclasses import dataclass

import torch
from torch.nn.functional import normalize


@dataclass
class SupConLoss:
    temperature: float = 0.1

    def __call__(self, embeddings, labels, indices_tuple=None, ref_emb=None, ref_labels=None):
        anchors, others = normalize(embeddings, dim=1), embeddings if ref_emb is None else ref_emb
        classes = labels if ref_emb is None else ref_labels
        logits = anchors @ normalize(others, dim=1).T / self.temperature
        positive = labels[:, None] == classes[None]
        if ref_emb is None:
            itself = torch.eye(len(anchors), dtype=torch.bool)
            logits, positive = logits.masked_fill(itself, -1e9), positive & ~itself
        log_p = logits.log_softmax(1) * positive
        number = positive.sum(1)
        return {mean}
"""
_SICK = "-(log_p.sum(1) / number).mean()"
_MENDED = "-(log_p.sum(1) / number.clamp(min=1)).sum() / (number > 0).sum().clamp(min=1)"


def train(folder: Path, mended: bool) -> None:
    """Write losses.py, the poster's file."""
    (folder / "losses.py").write_text(_LOSS.replace("{mean}", _MENDED if mended else _SICK), encoding="utf-8")
