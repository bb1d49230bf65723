"""What do the intervals of a sweep cost? The same sweep with and without them, in turns, in one run.

stacks: 145,000 pairs (29,000 images) in batches of 128, both directions, COCOS of triplet, triplet SH and NT-Xent, in
memory. tiles: one batch of everything, triplet and NT-Xent. bare: the products alone. One thread, CPU time.
"""

from __future__ import annotations

import argparse
from functools import partial

import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep

THREE, TWO = ("triplet", "triplet-sh", "ntxent:tau=0.05"), ("triplet", "ntxent:tau=0.05")
PANEL = 512  # rows of a bare product


def bare(embedded: SplitEmbeddings, batch_size: int | None) -> None:
    """Multiply the rows of every batch."""
    assert embedded.images is not None and embedded.captions is not None
    for batch in Sampling("pairs", batch_size).batches(embedded.relations):
        v, t = embedded.images[torch.from_numpy(batch.images)], embedded.captions[torch.from_numpy(batch.captions)]
        for rows in torch.split(v, PANEL):
            torch.mm(rows, t.T)


def measure(name: str, pairs: int, width: int, batch_size: int | None, specs: tuple[str, ...]) -> tuple[str, ...]:
    """Return a line of the table."""
    embedded = source(pairs // 5, 5, width, noise=2.0)
    plain, with_intervals = (Sweep(specs, ("cocos",), "pairs", batch_size, interval=one) for one in (None, 0.95))
    runs = [partial(sweep.run, embedded) for sweep in (plain, with_intervals)]
    product, without, with_them = medians([partial(bare, embedded, batch_size), *runs])
    memory = [peak(run) for run in runs]
    return (
        name, f"{pairs:,}", str(width), f"{product:.2f}", f"{without:.2f}", f"{with_them:.2f}",
        f"{with_them / without:.2f}", f"{with_them / product:.2f}", f"{memory[0]:.0f}", f"{memory[1]:.0f}",
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="A tenth of the pairs.")
    tenth = 10 if parser.parse_args().quick else 1
    torch.set_num_threads(1)
    print(machine())
    header = (
        "case", "pairs", "d", "bare s", "without s", "with s", "with / without", "with / bare", "without MB", "with MB"
    )  # fmt: skip
    cases = (
        ("stacks", 145_000, 512, 128, THREE), ("stacks", 145_000, 1024, 128, THREE),
        ("tiles", 15_000, 512, None, TWO), ("tiles", 32_000, 512, None, TWO),
    )  # fmt: skip
    print(table(header, [measure(name, pairs // tenth, *others) for name, pairs, *others in cases]))


if __name__ == "__main__":
    main()
