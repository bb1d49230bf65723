"""How long does it take to count at twenty temperatures on a batch of 4096 pairs, and how long at one?

ours: a sweep with `cocos`, all pairs in one batch, both directions, no frame. bare: S in panels of 512 rows, nothing
else. MB: peak above the embeddings. First, the counts of the first and last temperature are compared with those of a
sweep of this temperature alone.
"""

from __future__ import annotations

import argparse

import pandas as pd
import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.blocks.matrix import row_slices
from lossscope.engine.sweep import Sweep
from lossscope.registry import expand

ONE = ("ntxent:tau=0.05",)
TWENTY = tuple(expand("objectives", "ntxent:tau=0.02..0.2/20"))


def sweep_rows(embedded: SplitEmbeddings, objectives: tuple[str, ...]) -> pd.DataFrame:
    """Return the summary rows of a sweep with all pairs in one batch."""
    return Sweep(objectives, batch_size=None, interval=None).run(embedded, jobs=1).summary


def bare(embedded: SplitEmbeddings, buffer: torch.Tensor) -> None:
    """Compute S and nothing else, in panels of the size of the buffer."""
    assert embedded.images is not None and embedded.captions is not None
    for rows in row_slices(len(embedded.images), len(buffer)):
        torch.mm(embedded.images[rows], embedded.captions.T, out=buffer[: rows.stop - rows.start])


def check_against_single_sweeps(embedded: SplitEmbeddings) -> None:
    """Raise AssertionError if a temperature has other statistics alone than beside other temperatures."""
    keys = ["objective", "direction", "statistic"]
    together = sweep_rows(embedded, TWENTY).set_index(keys)["mean"]
    for spec in (TWENTY[0], TWENTY[-1]):
        alone = sweep_rows(embedded, (spec,)).set_index(keys)["mean"]
        pd.testing.assert_series_equal(together[alone.index], alone, rtol=1e-6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    embedded = source(options.size, 1, options.width, noise=2.0, device=options.device)
    check_against_single_sweeps(embedded)
    buffer = torch.empty(min(512, options.size), options.size, device=options.device)
    variants = {
        "bare": lambda: bare(embedded, buffer),
        "one temperature": lambda: sweep_rows(embedded, ONE),
        f"{len(TWENTY)} temperatures": lambda: sweep_rows(embedded, TWENTY),
    }
    times = medians(list(variants.values()), options.repeats, options.device)
    rows = []
    for (name, function), seconds in zip(variants.items(), times, strict=True):
        ratios = (f"{seconds / times[0]:.2f}", f"{seconds / times[1]:.2f}")
        rows.append((name, f"{seconds:.3f}", *ratios, f"{peak(function, options.device):.0f}"))
    print(f"{options.size} x {options.size}, d = {options.width}, medians of {options.repeats}; ", end="")
    print(f"{machine(options.device)}\ntau 0.02 to 0.2\n\n{table(('', 's', 'to bare', 'to one', 'MB'), rows)}")


if __name__ == "__main__":
    main()
