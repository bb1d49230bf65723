"""How long does a sweep of the paper's size take: 145,000 pairs (29,000 images) in batches of 128, d = 1024?

Embeddings in memory, both directions, the numbers of each batch written to a file. bare: rows gathered and multiplied,
nothing else, with a product a batch, and with a product for four batches into reused buffers; ratios are to the faster.
plain: the same numbers batch by batch in plain torch (benchmarks/plain.py); first, their means and deviations are
compared with ours. five: NT-Xent, triplet, triplet SH, Unified, VLC. cheap: all probes that `--probes cheap` takes.
First with one thread (CPU time), then with one thread a core (wall time): torch uses them, and ours shares its stacks
among them (`--jobs`).
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

SIZE = 128  # pairs in a batch
STACK = 4  # batches in one product; the fastest of 1 to 32
_COUNTED = {"cocos": "cocos:unit=paper", "weight_mass": "weight_mass:unit=paper"}  # in the unit of the paper
CHEAP = tuple(_COUNTED.get(name, name) for name in names("probes") if load("probes", name).cheap)


class Case:
    """Random embeddings, and the ways to sweep all batches of them."""

    def __init__(self, pairs: int, width: int, device: str) -> None:
        self.embedded = source(pairs // 5, 5, width, noise=2.0, device=device)
        assert self.embedded.images is not None and self.embedded.captions is not None
        self.images, self.captions, self.jobs = self.embedded.images, self.embedded.captions, 1

    def bare_by_batch(self) -> None:
        """Gather the rows of each batch and multiply them."""
        for batch in Sampling("pairs", SIZE).batches(self.embedded.relations):
            images, captions = (torch.from_numpy(x).to(self.images.device) for x in (batch.images, batch.captions))
            torch.mm(self.images[images], self.captions[captions].T)

    def bare_by_stack(self) -> None:
        """Gather and multiply the rows of several batches at once, into reused buffers."""
        d = self.images.shape[1]
        v, t = (self.images.new_empty(STACK * SIZE, d) for _ in "vt")
        S = self.images.new_empty(STACK, SIZE, SIZE)
        batches = list(Sampling("pairs", SIZE).batches(self.embedded.relations))
        full = [batch for batch in batches if len(batch.images) == SIZE]
        for start in range(0, len(full), STACK):
            stack = full[start : start + STACK]
            k = len(stack)
            torch.index_select(self.images, 0, self._index([b.images for b in stack]), out=v[: k * SIZE])
            torch.index_select(self.captions, 0, self._index([b.captions for b in stack]), out=t[: k * SIZE])
            V, T = (x[: k * SIZE].view(k, SIZE, d) for x in (v, t))
            torch.bmm(V, T.transpose(1, 2), out=S[:k])
        for batch in batches[len(full) :]:
            torch.mm(self.images[self._index([batch.images])], self.captions[self._index([batch.captions])].T)

    def _index(self, rows: list[Rows]) -> torch.Tensor:
        return torch.cat([torch.from_numpy(x) for x in rows]).to(self.images.device)

    def ours(self, objectives: tuple[str, ...], probes: tuple[str, ...]) -> None:
        """Sweep into a frame on disk."""
        with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
            Sweep(objectives, probes, interval=None).run(
                self.embedded, Frame.open(Path(folder) / "frame", {}), jobs=self.jobs
            )


def check_against_plain(embedded: SplitEmbeddings) -> int:
    """Return how many means and deviations equal those of plain torch, to 1e-4. Raise AssertionError if any differs."""
    plain = plain_summary(embedded, FIVE, all_probes=True)
    rows = Sweep(FIVE, CHEAP, interval=None).run(embedded).summary
    specs = dict(zip(rows["objective"].dropna().unique(), FIVE, strict=True))
    for row in rows.to_dict("records"):
        key = (specs.get(row["objective"]), row["direction"], row["statistic"])
        for name, expected in zip(("mean", "std"), plain[key], strict=True):
            assert abs(row[name] - expected) <= 1e-4 * max(1.0, abs(expected)), (key, name, row[name], expected)
    return 2 * len(rows)


def plain_summary(
    embedded: SplitEmbeddings, objectives: tuple[str, ...], all_probes: bool
) -> dict[Key, tuple[float, float]]:
    """Sweep in plain torch, into a file."""
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
        pairs, file = len(embedded.relations.caption_image), Path(folder) / "numbers.parquet"
        return summary(plain_sweep(embedded, objectives, all_probes), pairs, SIZE, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=145_000, help="a multiple of 5")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    n_equal = check_against_plain(source(400, 5, 64, noise=2.0, device=options.device))
    case = Case(options.pairs, options.width, options.device)
    thread_counts = sorted({1, os.cpu_count() or 1}) if options.device == "cpu" else [1]
    rows: list[tuple[str, ...]] = []
    for threads in thread_counts:
        torch.set_num_threads(threads)
        case.jobs = threads
        rows += [(str(threads), *row) for row in table_rows(case, options.repeats, options.device)]
    print(f"{options.pairs} pairs, d = {options.width}, batches of {SIZE}, medians of {options.repeats}; ", end="")
    print(f"{machine(options.device)}" + "".join(f", and {n} threads" for n in thread_counts[1:]))
    print(f"probes of `cheap`: {', '.join(CHEAP)}; {n_equal} means and deviations compared\n")
    print(table(("threads", "", "s", "to bare", "plain / ours", "MB"), rows))


def table_rows(case: Case, repeats: int, device: str) -> list[tuple[str, ...]]:
    """Time the variants; return their rows of the table."""
    variants = {
        "bare, a product a batch": case.bare_by_batch,
        "bare, a product for four": case.bare_by_stack,
        "NT-Xent, cocos": lambda: case.ours((NTXENT,), ("cocos",)),
        "plain: NT-Xent, cocos": lambda: plain_summary(case.embedded, (NTXENT,), all_probes=False),
        "five, cheap": lambda: case.ours(FIVE, CHEAP),
        "plain: five, cheap": lambda: plain_summary(case.embedded, FIVE, all_probes=True),
    }
    times = dict(zip(variants, medians(list(variants.values()), repeats, device), strict=True))
    bare = min(times[name] for name in variants if name.startswith("bare"))
    rows: list[tuple[str, ...]] = []
    for name, seconds in times.items():
        plain = times.get(f"plain: {name}")
        ratio = "" if plain is None else f"{plain / seconds:.1f}"
        rows.append((name, f"{seconds:.2f}", f"{seconds / bare:.2f}", ratio, f"{peak(variants[name], device):.0f}"))
    return rows


if __name__ == "__main__":
    main()
