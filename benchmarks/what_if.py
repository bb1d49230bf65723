"""What if the temperature were another one: twenty of them over one batch of 4096 pairs, against one of them.

ours: a sweep with `cocos`, all pairs in one batch, both directions, no frame. bare: S in panels of 512 rows, nothing
else. MB: peak above the embeddings. The counts of the first and the last temperature are compared with one at a time.
"""

from __future__ import annotations

import argparse

import pandas as pd
import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep
from lossscope.engine.tiled.matrix import row_slices
from lossscope.registry import expand

ONE = ("ntxent:tau=0.05",)
MANY = tuple(expand("objectives", "ntxent:tau=0.02..0.2/20"))


def swept(embedded: SplitEmbeddings, objectives: tuple[str, ...]) -> pd.DataFrame:
    """Summary rows of everything in one batch."""
    return Sweep(objectives, batch_size=None).run(embedded).summary


def bare(embedded: SplitEmbeddings, room: torch.Tensor) -> None:
    """S and nothing else."""
    assert embedded.images is not None and embedded.captions is not None
    for rows in row_slices(len(embedded.images), len(room)):
        torch.mm(embedded.images[rows], embedded.captions.T, out=room[: rows.stop - rows.start])


def compared(embedded: SplitEmbeddings) -> None:
    """Raise AssertionError when a temperature tells something else alone than among others."""
    together = swept(embedded, MANY).set_index(["objective", "direction", "statistic"])["mean"]
    for spec in (MANY[0], MANY[-1]):
        alone = swept(embedded, (spec,)).set_index(["objective", "direction", "statistic"])["mean"]
        pd.testing.assert_series_equal(together[alone.index], alone, rtol=1e-6)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--size", type=int, default=4096)
    asked.add_argument("--width", type=int, default=1024)
    asked.add_argument("--repeats", type=int, default=5)
    asked.add_argument("--device", default="cpu")
    given = asked.parse_args()
    torch.set_num_threads(1)
    embedded = source(given.size, 1, given.width, noise=2.0, device=given.device)
    compared(embedded)
    room = torch.empty(min(512, given.size), given.size, device=given.device)
    work = {
        "bare": lambda: bare(embedded, room),
        "one temperature": lambda: swept(embedded, ONE),
        f"{len(MANY)} temperatures": lambda: swept(embedded, MANY),
    }
    seconds = medians(list(work.values()), given.repeats, given.device)
    rows = []
    for (name, function), taken in zip(work.items(), seconds, strict=True):
        ratios = (f"{taken / seconds[0]:.2f}", f"{taken / seconds[1]:.2f}")
        rows.append((name, f"{taken:.3f}", *ratios, f"{peak(function, given.device):.0f}"))
    print(f"{given.size} x {given.size}, d = {given.width}, medians of {given.repeats}; {machine(given.device)}")
    print(f"tau 0.02 to 0.2\n\n{table(('', 's', 'to bare', 'to one', 'MB'), rows)}")


if __name__ == "__main__":
    main()
