"""Recall of a whole split, both directions: ours against the bare product, and against sorting each query's row.

bare: S in panels of 512 images, nothing else. ours: exact ranks, ties and the ten best of every query. a sort a query:
the way of VSE++'s evaluation, one product and one argsort for each image and for each caption; timed on a slice of the
images and their captions and scaled to all of them. Ranks of that slice are first compared on embeddings that are
rounded so that every product is exact: they are equal wherever no candidate ties with the positive.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.tiled.matrix import TiledMatrix, row_slices
from lossscope.retrieval.metrics import Ranks, retrieve_by_tiles

GRID = 2048  # cosines of vectors with coordinates k / 2048 are exact in float32, in any order of adding
K = 5  # captions of an image


class Case:
    """A split, the first images of which are also ranked by sorting."""

    def __init__(self, embedded: SplitEmbeddings, some: int) -> None:
        assert embedded.images is not None and embedded.captions is not None
        self.embedded, self.images, self.captions = embedded, embedded.images, embedded.captions
        self.some = some
        self.room = torch.empty(min(512, len(self.images)), len(self.captions), device=self.images.device)

    def bare(self) -> None:
        """S and nothing else."""
        for rows in row_slices(len(self.images), 512):
            torch.mm(self.images[rows], self.captions.T, out=self.room[: rows.stop - rows.start])

    def ours(self) -> tuple[Ranks, Ranks, Ranks, Ranks]:
        """0-based ranks of images, of captions, and how many candidates tie with the positive of each."""
        every = (np.arange(len(x)) for x in (self.images, self.captions))
        i2t, t2i = retrieve_by_tiles(TiledMatrix(self.embedded, *every), self.embedded.caption_image)
        return i2t.ranks, t2i.ranks, i2t.ties, t2i.ties

    def by_sorting(self) -> tuple[Ranks, Ranks]:
        """The ranks of some images, and of their captions."""
        V, T = self.images.cpu().numpy(), self.captions.cpu().numpy()
        i2t, t2i = np.zeros(self.some, dtype=np.int64), np.zeros(K * self.some, dtype=np.int64)
        for image in range(self.some):
            order = np.argsort(T @ V[image])[::-1]
            i2t[image] = np.flatnonzero(order // K == image)[0]
            for caption in range(K * image, K * image + K):
                order = np.argsort(V @ T[caption])[::-1]
                t2i[caption] = np.flatnonzero(order == image)[0]
        return i2t, t2i


def compared(case: Case) -> int:
    """How many ranks are the same by sorting. Raises AssertionError for one that is not, nor tied."""
    exact = replace(case.embedded, images=rounded(case.images), captions=rounded(case.captions))
    other = Case(exact, case.some)
    first, second, *ties = other.ours()
    for ours, tied, sorted_ in zip((first, second), ties, other.by_sorting(), strict=True):
        own, tied = ours[: len(sorted_)], tied[: len(sorted_)]
        assert bool(((own <= sorted_) & (sorted_ <= own + tied)).all()), np.flatnonzero(own != sorted_)
        assert float((tied > 0).mean()) < 0.01, "ties would excuse differences"
    return case.some * (1 + K)


def rounded(x: torch.Tensor) -> torch.Tensor:
    """Coordinates on a grid."""
    return (x * GRID).round() / GRID


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--images", type=int, default=5000, help="each with five captions")
    asked.add_argument("--width", type=int, default=1024)
    asked.add_argument("--slice", type=int, default=100, help="images that are also ranked by sorting")
    asked.add_argument("--repeats", type=int, default=5)
    asked.add_argument("--device", default="cpu")
    given = asked.parse_args()
    torch.set_num_threads(1)
    # positives among the hardest of the negatives, so that ranks are neither all first nor random
    case = Case(source(given.images, K, given.width, noise=given.width**0.5 / 4, device=given.device), given.slice)
    same = compared(case)
    bare, ours, some = medians((case.bare, case.ours, case.by_sorting), given.repeats, given.device)
    every = some * given.images / given.slice
    i2t, t2i, *_ = case.ours()
    recall = ", ".join(f"{name} {100 * float((ranks < 1).mean()):.1f}" for name, ranks in (("i2t", i2t), ("t2i", t2i)))
    rows = [
        ("bare", f"{bare:.2f}", "1.00", f"{peak(case.bare, given.device):.0f}"),
        ("ours", f"{ours:.2f}", f"{ours / bare:.2f}", f"{peak(case.ours, given.device):.0f}"),
        ("a sort a query, scaled", f"{every:.2f}", f"{every / bare:.2f}", f"{peak(case.by_sorting):.0f}"),
    ]
    print(f"{given.images} x {K * given.images}, d = {given.width}, medians of {given.repeats}; ", end="")
    print(f"{machine(given.device)}\nR@1 {recall}; {same} ranks compared; ", end="")
    print(f"sorting timed on {given.slice} images and scaled; sorting / ours {every / ours:.1f}\n")
    print(table(("", "s", "to bare", "MB"), rows))


if __name__ == "__main__":
    main()
