"""How long does `lossscope cocos` take on a folder of .npy shards, with all pairs in one batch and all threads?

ours: wall time of a run of the whole command in a new process, start and reading included. bare: S in panels of 512
rows with the same number of threads, timed on a slice of the rows before and after the command, and scaled to all rows.
MB: the peak memory of the process, embeddings included, read from /proc.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from commands import run_command
from measuring import machine, source, synchronize, table

from lossscope.core.embedded import SplitEmbeddings

SHARD = 50_000  # vectors in a file
PANEL = 512  # rows of S in one product
OBJECTIVE = "ntxent:tau=0.05"


def write_shards(embedded: SplitEmbeddings, folder: Path) -> None:
    """Write images and captions in shards, and the image of each caption in metadata.parquet."""
    for name, vectors in (("images", embedded.images), ("captions", embedded.captions)):
        assert vectors is not None
        for number, shard in enumerate(torch.split(vectors, SHARD)):
            np.save(folder / f"{name}-{number:03d}.npy", shard.numpy())
    pd.DataFrame({"caption_image": embedded.relations.caption_image}).to_parquet(folder / "metadata.parquet")


def bare_seconds(embedded: SplitEmbeddings, panels: int, device: str) -> float:
    """Return the wall seconds of all panels of S, estimated from the median of the first `panels`."""
    assert embedded.images is not None and embedded.captions is not None
    images, captions = embedded.images[: panels * PANEL].to(device), embedded.captions.to(device)
    buffer = torch.empty(min(PANEL, len(images)), len(captions), device=device)
    seconds_per_row = []
    for rows in torch.split(images, PANEL):
        synchronize(device)
        start = time.perf_counter()
        torch.mm(rows, captions.T, out=buffer[: len(rows)])
        synchronize(device)
        seconds_per_row.append((time.perf_counter() - start) / len(rows))
    # the first panel also allocates memory, so it is left out if there are others
    return float(np.median(seconds_per_row[1:] or seconds_per_row)) * len(embedded.images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=200_000, help="pairs")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--panels", type=int, default=20, help="panels of the slice that the product is timed on")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    embedded = source(options.size, 1, options.width, noise=2.0)
    with tempfile.TemporaryDirectory(prefix="lossscope-") as parent:
        folder = Path(parent) / "dump"
        folder.mkdir()
        write_shards(embedded, folder)
        before = bare_seconds(embedded, options.panels, options.device)
        ours, megabytes, rows = run_command(
            folder, ["--objective", OBJECTIVE, "--batch-size", "all", "--device", options.device]
        )
    bare = (before + bare_seconds(embedded, options.panels, options.device)) / 2
    (count,) = (row["mean"] for row in rows if row["statistic"] == "C_neg" and row["direction"] == "i2t")
    processor = machine(options.device).removeprefix("one thread of ")
    threads = f"{torch.get_num_threads()} threads of " if options.device == "cpu" else ""
    print(f"{options.size} x {options.size}, d = {options.width}, {OBJECTIVE}; {threads}{processor}")
    share = min(options.panels * PANEL / options.size, 1)
    print(f"product timed on {100 * share:.0f} % of the rows and scaled; mean count i2t {count:.4f}\n")
    numbers = (f"{bare:.1f}", f"{ours:.1f}", f"{ours / bare:.2f}", f"{megabytes:.0f}")
    print(table(("pairs", "bare s", "ours s", "ratio", "MB"), [(str(options.size), *numbers)]))


if __name__ == "__main__":
    main()
