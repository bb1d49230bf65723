"""A sweep of the paper's size: 29,000 images with five captions each, all 145,000 pairs in batches of 128, d = 1024.

Embeddings in memory, both directions, the numbers of every batch written to a file. bare: rows gathered and multiplied,
nothing else, once with a product for each batch and once with one for four into room that is used again; ratios are to
the faster. plain: the same numbers batch by batch in plain torch (benchmarks/plain.py); their means and deviations are
first compared with ours. five: NT-Xent, triplet, triplet SH, Unified, VLC. cheap: all probes that `--probes cheap`
takes. First one thread (CPU time), then as many as there are cores, which is what a user gets (wall time).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import torch
from measuring import machine, medians, peak, source, table
from plain import FIVE, NTXENT, Key, summary
from plain import sweep as plain_sweep

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Rows
from lossscope.engine.sweep import Sweep
from lossscope.io.frames import Frame
from lossscope.registry import load, names

SIZE, STACK = 128, 4  # of 1 to 32, these were the fastest
CHEAP = tuple(name for name in names("probes") if load("probes", name).cheap)


class Case:
    """A source, and the ways to look at all of it."""

    def __init__(self, pairs: int, width: int, device: str) -> None:
        self.embedded = source(pairs // 5, 5, width, noise=2.0, device=device)
        assert self.embedded.images is not None and self.embedded.captions is not None
        self.images, self.captions = self.embedded.images, self.embedded.captions

    def one_by_one(self) -> None:
        """The rows of each batch and their product."""
        for batch in Sampling("pairs", SIZE).batches(self.embedded.caption_image):
            images, captions = (torch.from_numpy(x).to(self.images.device) for x in (batch.images, batch.captions))
            torch.mm(self.images[images], self.captions[captions].T)

    def together(self) -> None:
        """The same for many batches at once, into room that is used again."""
        d = self.images.shape[1]
        v, t = (self.images.new_empty(STACK * SIZE, d) for _ in "vt")
        S = self.images.new_empty(STACK, SIZE, SIZE)
        batches = list(Sampling("pairs", SIZE).batches(self.embedded.caption_image))
        whole = [batch for batch in batches if len(batch.images) == SIZE]
        for start in range(0, len(whole), STACK):
            some = whole[start : start + STACK]
            k = len(some)
            torch.index_select(self.images, 0, self._rows([b.images for b in some]), out=v[: k * SIZE])
            torch.index_select(self.captions, 0, self._rows([b.captions for b in some]), out=t[: k * SIZE])
            many = (x[: k * SIZE].view(k, SIZE, d) for x in (v, t))
            torch.bmm(next(many), next(many).transpose(1, 2), out=S[:k])
        for batch in batches[len(whole) :]:
            torch.mm(self.images[self._rows([batch.images])], self.captions[self._rows([batch.captions])].T)

    def _rows(self, rows: list[Rows]) -> torch.Tensor:
        return torch.cat([torch.from_numpy(x) for x in rows]).to(self.images.device)

    def ours(self, objectives: tuple[str, ...], probes: tuple[str, ...]) -> None:
        """A sweep into a frame."""
        with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
            Sweep(objectives, probes).run(self.embedded, Frame.open(Path(folder) / "frame", {}))


def compared(embedded: SplitEmbeddings) -> int:
    """How many means and deviations of the plain way are ours, to 1e-4. Raises AssertionError when one is not."""
    theirs = plainly(embedded, FIVE, everything=True)
    rows = Sweep(FIVE, CHEAP).run(embedded).summary
    specs = dict(zip(rows["objective"].dropna().unique(), FIVE, strict=True))
    for row in rows.to_dict("records"):
        key = (specs.get(row["objective"]), row["direction"], row["statistic"])
        for name, expected in zip(("mean", "std"), theirs[key], strict=True):
            assert abs(row[name] - expected) <= 1e-4 * max(1.0, abs(expected)), (key, name, row[name], expected)
    return 2 * len(rows)


def plainly(embedded: SplitEmbeddings, objectives: tuple[str, ...], everything: bool) -> dict[Key, tuple[float, float]]:
    """The plain way, into a file."""
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
        return summary(plain_sweep(embedded, objectives, everything), Path(folder) / "numbers.parquet")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pairs", type=int, default=145_000, help="a multiple of 5")
    asked.add_argument("--width", type=int, default=1024)
    asked.add_argument("--repeats", type=int, default=5)
    asked.add_argument("--device", default="cpu")
    given = asked.parse_args()
    torch.set_num_threads(1)
    same = compared(source(400, 5, 64, noise=2.0, device=given.device))
    case = Case(given.pairs, given.width, given.device)
    many = sorted({1, os.cpu_count() or 1}) if given.device == "cpu" else [1]
    rows: list[tuple[str, ...]] = []
    for threads in many:
        torch.set_num_threads(threads)
        rows += [(str(threads), *row) for row in measured(case, given.repeats, given.device)]
    print(f"{given.pairs} pairs, d = {given.width}, batches of {SIZE}, medians of {given.repeats}; ", end="")
    print(f"{machine(given.device)}" + "".join(f", and {n} threads" for n in many[1:]))
    print(f"probes of `cheap`: {', '.join(CHEAP)}; {same} means and deviations compared\n")
    print(table(("threads", "", "s", "to bare", "plain / ours", "MB"), rows))


def measured(case: Case, repeats: int, device: str) -> list[tuple[str, ...]]:
    """Rows of the table."""
    work = {
        "bare, a product a batch": case.one_by_one,
        "bare, a product for four": case.together,
        "NT-Xent, cocos": lambda: case.ours((NTXENT,), ("cocos",)),
        "plain: NT-Xent, cocos": lambda: plainly(case.embedded, (NTXENT,), everything=False),
        "five, cheap": lambda: case.ours(FIVE, CHEAP),
        "plain: five, cheap": lambda: plainly(case.embedded, FIVE, everything=True),
    }
    seconds = dict(zip(work, medians(list(work.values()), repeats, device), strict=True))
    bare = min(seconds[name] for name in work if name.startswith("bare"))
    rows: list[tuple[str, ...]] = []
    for name, taken in seconds.items():
        other = seconds.get(f"plain: {name}")
        plain = "" if other is None else f"{other / taken:.1f}"
        rows.append((name, f"{taken:.2f}", f"{taken / bare:.2f}", plain, f"{peak(work[name], device):.0f}"))
    return rows


if __name__ == "__main__":
    main()
