"""Does cost grow as in theory when n, d, B or the number of objectives doubles?

CPU time of one thread and peak memory above the inputs, at three sizes, each twice the size before; sizes run in turns,
medians of at least two runs. time: growth from the second to the third size, where fixed costs matter least (in
brackets before it: from the first to the second). theory: growth of a doubling; for d it is 1 + the share of the
product in the time, measured beside it. A size that grows by more than 10 % above its theory has a mark, !; memory has
it only above 8 MB, as the memory of a process is counted in pages that libraries keep.
n: pairs (sweep, tiles, eval, audit), rows (lint), test queries of a direction (report). tiles have one batch of all
pairs. An audit of so few items scores all pairs, and pairs of random batches. report: two seeds an objective.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import growth_cases as cases
import torch
from growth_cases import Function, Size, doubled
from measuring import machine, peak, source, table

Theory = float | Literal["product", "pairs"]
TOLERANCE = 1.1  # of the theory
LEAST_MB = 8.0  # smallest excess of memory that counts
SECONDS = 2.0  # of runs of a size, in two to five runs


@dataclass(frozen=True)
class Case:
    """A function, the size that doubles twice, and the growth of its time and memory in theory."""

    name: str
    build: Callable[[Size, Path], Function]
    axis: Literal["n", "d", "B", "objectives"]
    first: Size
    time: Theory
    memory: Theory


CASES = (
    Case("sweep", cases.sweep, "n", Size(40_000), 2, 2),
    Case("sweep", cases.sweep, "d", Size(40_000), "product", 2),
    Case("sweep", cases.sweep, "B", Size(40_000, B=64), 2, 2),
    Case("sweep", cases.sweep, "objectives", Size(40_000), 2, 2),
    Case("tiles", cases.tiles, "n", Size(4096), 4, 2),
    Case("tiles", cases.tiles, "d", Size(4096), "product", 1),
    Case("tiles", cases.tiles, "objectives", Size(4096), 2, 2),
    Case("eval", cases.eval_, "n", Size(5000), 4, 2),
    Case("eval", cases.eval_, "d", Size(10_000), "product", 1),
    Case("audit", cases.audit, "n", Size(1250), "pairs", "pairs"),
    Case("audit", cases.audit, "d", Size(1250), 2, 2),
    Case("audit", cases.audit, "B", Size(1250, B=64), 2, 2),
    Case("audit", cases.audit, "objectives", Size(1250), 2, 2),
    Case("lint", cases.lint_, "n", Size(100_000), 2, 2),
    Case("report", cases.report, "n", Size(2000), 2, 2),
    Case("report", cases.report, "objectives", Size(1000), 2, 2),
)


def measure(case: Case, folder: Path) -> tuple[str, ...]:
    """Return the row of a case: its sizes, seconds, growth and theory, and the same of memory."""
    sizes = [doubled(case.first, case.axis, times) for times in range(3)]
    functions = [case.build(size, folder) for size in sizes]
    functions[0]()  # load modules before the timing
    seconds: list[list[float]] = [[], [], []]
    megabytes = [0.0, 0.0, 0.0]
    for turn in range(5):
        for position, function in enumerate(functions):
            if turn < 2 or sum(seconds[position]) < SECONDS:
                megabytes[position] = max(megabytes[position], peak(partial(run_timed, function, seconds[position])))
    times = [statistics.median(of_size) for of_size in seconds]
    expected = growth_in_theory(case, case.time, sizes, times[1])
    of_memory = growth_in_theory(case, case.memory, sizes, times[1])
    too_slow = times[2] > TOLERANCE * expected * times[1]
    too_large = megabytes[2] > TOLERANCE * of_memory * megabytes[1] + LEAST_MB
    values = [str(getattr(size, case.axis)) for size in sizes]
    return (
        case.name, case.axis, " ".join(values), " ".join(f"{t:.3g}" for t in times),
        f"({times[1] / times[0]:.2f}) {times[2] / times[1]:.2f}", f"{expected:.2f}", "!" if too_slow else "",
        " ".join(f"{m:.0f}" for m in megabytes), f"{megabytes[2] / max(megabytes[1], 1):.2f}", f"{of_memory:.2f}",
        "!" if too_large else "",
    )  # fmt: skip


def run_timed(function: Function, seconds: list[float]) -> None:
    """Run a function and append its CPU time."""
    start = time.process_time()
    function()
    seconds.append(time.process_time() - start)


def growth_in_theory(case: Case, theory: Theory, sizes: list[Size], seconds: float) -> float:
    """Return the growth from the second to the third size.

    Args:
        case: to run.
        theory: a number; `product`: 1 + the share of a product that grows with d; `pairs`: that of an audit's pairs.
        sizes: all three.
        seconds: of the second size.
    """
    if theory == "product":
        before, after = (product_seconds(case, size) for size in sizes[1:])
        return 1 + max(after - before, 0.0) / seconds
    if theory == "pairs":
        before, after = (size.n // 5 * size.n + size.n * size.B for size in sizes[1:])
        return after / before
    return float(theory)


def product_seconds(case: Case, size: Size) -> float:
    """Return the seconds of the bare product in a case, the median of three."""
    captions = 1 if case.name == "tiles" else 5
    function = cases.product(
        source(size.n // captions, captions, size.d, 2.0), size.B if case.name == "sweep" else None
    )
    seconds: list[float] = []
    for _ in range(4):
        run_timed(function, seconds)
    return statistics.median(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of cases")
    parser.add_argument("--divide", type=int, default=1, help="first n by this number, to see that the script runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory(prefix="lossscope-growth-") as folder:
        for case in CASES:
            if options.only is None or case.name in options.only:
                first = Size(case.first.n // options.divide, case.first.d, case.first.B, case.first.objectives)
                rows.append(
                    measure(Case(case.name, case.build, case.axis, first, case.time, case.memory), Path(folder))
                )
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print(f"{machine()}\n")
    heads = ("", "doubled", "sizes", "seconds", "time", "theory", "!", "MB", "memory", "theory", "!")
    print(table(heads, rows))


if __name__ == "__main__":
    main()
