"""`lossscope cocos` on a folder of .npy shards, everything in one batch, as a process of its own with all its threads.

ours: wall time of the whole command, start and reading included, one run. bare: S in panels of 512 rows with the same
number of threads, timed on a slice of the rows before and after the command and scaled to all of them. MB: the peak of
what the process holds, embeddings included, as /proc tells it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from measuring import machine, settled, source, table

from lossscope.core.embedded import SplitEmbeddings

SHARD, ROWS, OBJECTIVE = 50_000, 512, "ntxent:tau=0.05"


def written(embedded: SplitEmbeddings, folder: Path) -> None:
    """Both sides in shards, and which image each caption describes."""
    for name, side in (("images", embedded.images), ("captions", embedded.captions)):
        assert side is not None
        for number, part in enumerate(torch.split(side, SHARD)):
            np.save(folder / f"{name}-{number:03d}.npy", part.numpy())
    pd.DataFrame({"caption_image": embedded.caption_image}).to_parquet(folder / "metadata.parquet")


def command(folder: Path, device: str) -> tuple[float, float, list[dict[str, object]]]:
    """Wall seconds of `lossscope cocos` on the folder, the most MB that it held, and its rows."""
    words = [sys.executable, "-m", "lossscope_cli", "cocos", str(folder), "--objective", OBJECTIVE]
    words += ["--batch-size", "all", "--device", device, "--format", "json", "--quiet"]
    out = folder.with_name("out.json")
    begun = time.perf_counter()
    with open(out, "w", encoding="utf-8") as file:
        own = {**os.environ, "LOSSSCOPE_CACHE": str(folder.with_name("cache"))}
        process = subprocess.Popen(words, stdout=file, env=own)
        most = 0.0
        while process.poll() is None:
            most = max(most, held(process.pid))
            time.sleep(0.02)
    taken = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"`{' '.join(words)}` must succeed; it ended with {process.returncode}")
    return taken, most, json.loads(out.read_text(encoding="utf-8"))["rows"]


def held(pid: int) -> float:
    """MB that a process has held at most; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")), 0.0)


def bare(embedded: SplitEmbeddings, panels: int, device: str) -> float:
    """Wall seconds of all panels of S, from some of them."""
    assert embedded.images is not None and embedded.captions is not None
    images, captions = embedded.images[: panels * ROWS].to(device), embedded.captions.to(device)
    room = torch.empty(min(ROWS, len(images)), len(captions), device=device)
    taken = []
    for rows in torch.split(images, ROWS):
        settled(device)
        begun = time.perf_counter()
        torch.mm(rows, captions.T, out=room[: len(rows)])
        settled(device)
        taken.append((time.perf_counter() - begun) / len(rows))
    return float(np.median(taken[1:] or taken)) * len(embedded.images)  # the first one also fetches memory


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--size", type=int, default=200_000, help="pairs")
    asked.add_argument("--width", type=int, default=256)
    asked.add_argument("--panels", type=int, default=20, help="panels of the slice that the product is timed on")
    asked.add_argument("--device", default="cpu")
    given = asked.parse_args()
    embedded = source(given.size, 1, given.width, noise=2.0)
    with tempfile.TemporaryDirectory(prefix="lossscope-") as place:
        folder = Path(place) / "dump"
        folder.mkdir()
        written(embedded, folder)
        before = bare(embedded, given.panels, given.device)
        taken, most, rows = command(folder, given.device)
    product = (before + bare(embedded, given.panels, given.device)) / 2
    (count,) = (row["mean"] for row in rows if row["statistic"] == "C_neg" and row["direction"] == "i2t")
    told = machine(given.device).removeprefix("one thread of ")
    threads = f"{torch.get_num_threads()} threads of " if given.device == "cpu" else ""
    print(f"{given.size} x {given.size}, d = {given.width}, {OBJECTIVE}; {threads}{told}")
    share = min(given.panels * ROWS / given.size, 1)
    print(f"product timed on {100 * share:.0f} % of the rows and scaled; mean count i2t {count:.4f}\n")
    numbers = (f"{product:.1f}", f"{taken:.1f}", f"{taken / product:.2f}", f"{most:.0f}")
    print(table(("pairs", "bare s", "ours s", "ratio", "MB"), [(str(given.size), *numbers)]))


if __name__ == "__main__":
    main()
