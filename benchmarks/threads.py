"""What do threads gain: the paper's sweep, and one large batch in tiles, with one job and with a job for each core?

Wall time, both in turns. parts: seconds of one job in stacks or bands, which threads share; outside: the other seconds,
for rows, files and the summary. lock: seconds of parts that a profiler finds in functions of Python, not of torch and
numpy; the profiler's cost makes them longer. MB: peak above the embeddings, of one job and of all. At 8 and 64 cores
the time is computed, not measured: outside + the larger of parts / cores and lock.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from measuring import machine, peak, source, table
from paper_sweep import CHEAP
from paper_sweep import Case as PaperSweep
from plain import FIVE, NTXENT
from tiles import Case as Tiles

from lossscope.engine.batch_runner import BatchRunner
from lossscope.engine.fold import _Pass

PARTS: tuple[tuple[Any, str], ...] = ((BatchRunner, "_run_stack"), (_Pass, "_fold_band"))


@contextmanager
def around(measured: Callable[[Callable[[], Any]], Any]) -> Iterator[None]:
    """Call each part of the work, a stack or a band, through a function."""
    kept = [(kind, name, getattr(kind, name)) for kind, name in PARTS]
    for kind, name, part in kept:
        setattr(kind, name, lambda *given, part=part: measured(lambda: part(*given)))
    try:
        yield
    finally:
        for kind, name, part in kept:
            setattr(kind, name, part)


def seconds_of_parts(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of work in one job, and the seconds in its parts."""
    spent: list[float] = []

    def timed(part: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = part()
        spent.append(time.perf_counter() - start)
        return result

    with around(timed):
        start = time.perf_counter()
        work()
    return time.perf_counter() - start, sum(spent)


def profile(work: Callable[[], object]) -> tuple[float, list[tuple[str, ...]]]:
    """Return the seconds of parts in Python's functions, and the slowest functions of any kind."""
    profiler = cProfile.Profile()
    with around(profiler.runcall):
        work()
    found: dict[Any, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    python = sum(seconds for (file, _, _), (_, _, seconds, _, _) in found.items() if file != "~")
    rows: list[tuple[str, ...]] = []
    for (file, _, name), (_, calls, seconds, _, _) in sorted(found.items(), key=lambda item: -item[1][2])[:12]:
        rows.append((name if file == "~" else f"{os.path.basename(file)}: {name}", str(calls), f"{seconds:.3f}"))
    return python, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=145_000, help="a multiple of 5")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--tile-pairs", type=int, default=16384)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(1)
    sweep = PaperSweep(options.pairs, options.width, "cpu")
    tiles = Tiles(source(options.tile_pairs, 1, options.width, noise=2.0), NTXENT)
    works: dict[str, tuple[Any, Callable[[], object]]] = {
        "NT-Xent, cocos": (sweep, lambda: sweep.ours((NTXENT,), ("cocos",))),
        "five, cheap": (sweep, lambda: sweep.ours(FIVE, CHEAP)),
        f"tiles, {options.tile_pairs} pairs": (tiles, tiles.ours),
    }
    rows, profiles = [], []
    for name, (case, work) in works.items():
        times: dict[int, list[float]] = {1: [], options.jobs: []}
        for turn in range(options.repeats + 1):
            for case.jobs in times:
                start = time.perf_counter()
                work()
                if turn:  # the first turn does not count
                    times[case.jobs].append(time.perf_counter() - start)
        with_one, with_all = (statistics.median(taken) for taken in times.values())
        megabytes = []
        for case.jobs in times:
            megabytes.append(f"{peak(work):.0f}")
        case.jobs = 1
        of_turns = [seconds_of_parts(work) for _ in range(3)]
        parts = statistics.median(inside for _, inside in of_turns)
        outside = statistics.median(whole - inside for whole, inside in of_turns)
        lock, longest = profile(work)
        at = [with_one / (outside + max(parts / cores, lock)) for cores in (8, 64)]
        numbers = (with_one, with_all, with_one / with_all, parts, outside, lock, *at)
        rows.append((name, *(f"{x:.2f}" for x in numbers), *megabytes))
        profiles.append(f"{name}\n{table(('own time of functions in parts', 'calls', 's'), longest)}")
    print(f"{options.pairs} pairs, d = {options.width}; {machine()}, medians of {options.repeats}\n")
    heads = (
        "",
        "1 job s",
        f"{options.jobs} jobs s",
        "gain",
        "parts",
        "outside",
        "lock",
        "gain at 8",
        "at 64",
        "MB of 1",
        f"of {options.jobs}",
    )
    print(table(heads, rows))
    print("\n" + "\n\n".join(profiles))


if __name__ == "__main__":
    main()
