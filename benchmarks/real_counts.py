"""What do tiles cost if weights count: about 1, 15 and 100 a query, on clustered embeddings?

The random embeddings of benchmarks/tiles.py have a mean count of 0, so that tiles keep no entry. Here the directions of
pairs lie in a subspace of few dimensions, so that other pairs are near (`benchmarks/clustered.py`). For counts of 15
and 100, 16 and 98 pairs share a direction, in random order, as at most 99 weights can be above 0.01. kept: entries a
query that could count by the sums so far when their tile was added; mean count: entries that counted in the end.
"""

from __future__ import annotations

import argparse
import sys

import torch
from clustered import BY_COUNT
from measuring import machine, medians, peak, table
from tiles import Case

from lossscope.objectives.counting.kept_entries import KeptEntries
from lossscope.objectives.counting.large_entries import LargeEntries


def count_kept(case: Case) -> tuple[float, float, float]:
    """Return the number of kept entries a query before any is discarded, the mean count, and the peak in MB."""
    kept, counts, original = 0, [], KeptEntries.add

    def counting(self: KeptEntries, entries: LargeEntries, *others: object) -> None:
        nonlocal kept
        kept += len(entries.queries)
        original(self, entries, *others)  # type: ignore[arg-type]

    KeptEntries.add = counting  # type: ignore[method-assign, assignment]
    try:
        megabytes = peak(lambda: counts.append(case.ours()))
    finally:
        KeptEntries.add = original  # type: ignore[method-assign]
    return kept / sum(case.matrix.shape), counts[0], megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--counts", type=int, nargs="+", default=list(BY_COUNT), choices=list(BY_COUNT))
    parser.add_argument("--objectives", nargs="+", default=["ntxent:tau=0.05", "triplet"])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for size in options.sizes:
        for count in options.counts:
            for spec in options.objectives:
                case = Case(BY_COUNT[count].source(size, options.width), spec)
                kept, mean_count, megabytes = count_kept(case)
                bare, ours = medians((case.bare, case.ours), options.repeats)
                numbers = (f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}", f"{megabytes:.0f}")
                shape = " x ".join(map(str, case.matrix.shape))
                rows.append((spec, shape, f"about {count}", *numbers, f"{kept:.1f}", f"{mean_count:.1f}"))
                print(*rows[-1], file=sys.stderr, flush=True)
    print(f"d = {options.width}, medians of {options.repeats}, {machine()}\n")
    print(table(("objective", "S", "aimed at", "bare s", "ours s", "ratio", "MB", "kept", "mean count"), rows))


if __name__ == "__main__":
    main()
