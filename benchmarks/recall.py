"""How long does recall of a whole split take, against the bare product, and against sorting the row of each query?

Both directions. bare: S in panels of 512 images, nothing else. ours: exact ranks, ties and the ten best of each query.
a sort a query: VSE++'s evaluation, with a product and an argsort for each image and each caption; timed on a slice of
the images and their captions, and scaled to all. First, ranks of that slice are compared on embeddings rounded so that
all products are exact: they are equal unless a candidate ties with the positive.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.blocks.matrix import TiledMatrix, row_slices
from lossscope.retrieval.metrics import Ranks, retrieve_by_tiles

GRID = 2048  # cosines of vectors with coordinates k / 2048 are exact in float32, in any order of adding
K = 5  # captions of an image


class Case:
    """A split; its first `n_sort` images, and their captions, are also ranked by sorting."""

    def __init__(self, embedded: SplitEmbeddings, n_sort: int) -> None:
        assert embedded.images is not None and embedded.captions is not None
        self.embedded, self.images, self.captions = embedded, embedded.images, embedded.captions
        self.n_sort = n_sort
        self.buffer = torch.empty(min(512, len(self.images)), len(self.captions), device=self.images.device)

    def bare(self) -> None:
        """Compute S and nothing else."""
        for rows in row_slices(len(self.images), 512):
            torch.mm(self.images[rows], self.captions.T, out=self.buffer[: rows.stop - rows.start])

    def ours(self) -> tuple[Ranks, Ranks, Ranks, Ranks]:
        """Return 0-based ranks of images and of captions, and how many candidates tie with the positive of each."""
        image_rows, caption_rows = (np.arange(len(x)) for x in (self.images, self.captions))
        matrix = TiledMatrix(self.embedded, image_rows, caption_rows)
        i2t, t2i = retrieve_by_tiles(matrix, self.embedded.relations.caption_image)
        return i2t.ranks, t2i.ranks, i2t.ties, t2i.ties

    def by_sorting(self) -> tuple[Ranks, Ranks]:
        """Return the ranks of the first `n_sort` images, and of their captions."""
        V, T = self.images.cpu().numpy(), self.captions.cpu().numpy()
        i2t, t2i = np.zeros(self.n_sort, dtype=np.int64), np.zeros(K * self.n_sort, dtype=np.int64)
        for image in range(self.n_sort):
            order = np.argsort(T @ V[image])[::-1]
            i2t[image] = np.flatnonzero(order // K == image)[0]
            for caption in range(K * image, K * image + K):
                order = np.argsort(V @ T[caption])[::-1]
                t2i[caption] = np.flatnonzero(order == image)[0]
        return i2t, t2i


def check_against_sorting(case: Case) -> int:
    """Return how many ranks equal those of sorting. Raise AssertionError if any differs without a tie."""
    on_grid = replace(case.embedded, images=round_to_grid(case.images), captions=round_to_grid(case.captions))
    exact_case = Case(on_grid, case.n_sort)
    i2t_ranks, t2i_ranks, i2t_ties, t2i_ties = exact_case.ours()
    i2t_sorting, t2i_sorting = exact_case.by_sorting()
    for ranks, ties, expected in ((i2t_ranks, i2t_ties, i2t_sorting), (t2i_ranks, t2i_ties, t2i_sorting)):
        low, high = ranks[: len(expected)], (ranks + ties)[: len(expected)]
        assert bool(((low <= expected) & (expected <= high)).all()), np.flatnonzero(low != expected)
        assert float((high > low).mean()) < 0.01, "ties would excuse differences"
    return case.n_sort * (1 + K)


def round_to_grid(x: torch.Tensor) -> torch.Tensor:
    """round(x · 2048) / 2048."""
    return (x * GRID).round() / GRID


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=5000, help="each with five captions")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--slice", type=int, default=100, help="images that are also ranked by sorting")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    # enough noise to put positives among the hardest negatives: ranks are neither all first nor random
    noise = options.width**0.5 / 4
    case = Case(source(options.images, K, options.width, noise=noise, device=options.device), options.slice)
    n_equal = check_against_sorting(case)
    functions = (case.bare, case.ours, case.by_sorting)
    bare, ours, slice_seconds = medians(functions, options.repeats, options.device)
    sorting = slice_seconds * options.images / options.slice
    i2t, t2i, *_ = case.ours()
    recall = ", ".join(f"{name} {100 * float((ranks < 1).mean()):.1f}" for name, ranks in (("i2t", i2t), ("t2i", t2i)))
    rows = [
        ("bare", f"{bare:.2f}", "1.00", f"{peak(case.bare, options.device):.0f}"),
        ("ours", f"{ours:.2f}", f"{ours / bare:.2f}", f"{peak(case.ours, options.device):.0f}"),
        ("a sort a query, scaled", f"{sorting:.2f}", f"{sorting / bare:.2f}", f"{peak(case.by_sorting):.0f}"),
    ]
    print(f"{options.images} x {K * options.images}, d = {options.width}, medians of {options.repeats}; ", end="")
    print(f"{machine(options.device)}\nR@1 {recall}; {n_equal} ranks compared; ", end="")
    print(f"sorting timed on {options.slice} images and scaled; sorting / ours {sorting / ours:.1f}\n")
    print(table(("", "s", "to bare", "MB"), rows))


if __name__ == "__main__":
    main()
