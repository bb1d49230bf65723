"""The distance of the hardest negative comes down to that of the hardest positive: is it the options, or the code?

The poster trains a ResNet on Market-1501 with the hardest triplets of 16 persons with 4 pictures each, and rank 1 is
2.6 %. `dist[i][1 - mask[i]]` shall select a row's negatives; in that release of torch it selects rows 0 and 1 by
number. A loop with this loss has an ordinary curve: most rows get the distance to another person.
"""

from __future__ import annotations

from pathlib import Path

from .base import Thread

THREAD = Thread(
    reference="Cysu/open-reid#24",
    mistake="The nearest negative is the nearer of pictures 0 and 1 of the batch, for any person that they show.",
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
