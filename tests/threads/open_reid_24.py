"""The distance of the hardest negative comes down to that of the hardest positive: is it the options, or the code?

A ResNet is trained on Market-1501 with the hardest triplets of 16 persons with 4 pictures each, and rank 1 is 2.6 %.
The negatives of a row are taken by `dist[i][1 - mask[i]]`, which by the release of torch are rows 0 and 1 by number. A
loop with this loss has a curve like any other: most rows get the distance to somebody else.
"""

from __future__ import annotations

from pathlib import Path

from .base import Thread

THREAD = Thread(
    reference="Cysu/open-reid#24",
    mistake="The nearest negative is the nearer of the pictures 0 and 1 of the batch, whoever they show.",
    mended="It is the nearest picture of another person: `dist[i][mask[i] == 0]`.",
    command="lossscope check ./triplet.py:TripletLoss --processes 1",
    first="order of pairs",
)
_LOSS = """from dataclasses import dataclass

import torch


@dataclass
class TripletLoss:
    margin: float = 0.3

    def __call__(self, embeddings, labels, indices_tuple=None, ref_emb=None, ref_labels=None):
        others, classes = (embeddings, labels) if ref_emb is None else (ref_emb, ref_labels)
        dist = torch.cdist(embeddings, others)
        mask = labels[:, None] == classes[None]
        furthest = [dist[i][mask[i]].max() for i in range(len(dist))]
        nearest = [dist[i][{negatives}].min() for i in range(len(dist))]
        return (self.margin + torch.stack(furthest) - torch.stack(nearest)).relu().mean()
"""


def train(folder: Path, mended: bool) -> None:
    """Write triplet.py, the library's file."""
    negatives = "mask[i] == 0" if mended else "1 - mask[i].long()"
    (folder / "triplet.py").write_text(_LOSS.replace("{negatives}", negatives), encoding="utf-8")
