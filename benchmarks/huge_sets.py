"""How long does a sample of queries take on a million images and a million captions, in float16 shards on disk?

`lossscope cocos SHARDS --queries N` runs once in a new process, start and reading included: N queries of each direction
against all candidates. MB: the peak memory of the process, libraries included, read from /proc. The interval is of
C_neg of all million queries, i2t. `reads`: bytes of the shards; the command reads each shard once, and the rows of the
sample.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from commands import run_command
from measuring import machine, table

SHARD = 100_000  # vectors in a file
CLUSTER = 50  # similar items
OBJECTIVE = "ntxent:tau=0.05"


def write_shards(folder: Path, size: int, width: int) -> int:
    """Write images and captions in clusters of 50, as float16; return their bytes."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(max(size // CLUSTER, 1), width, generator=generator)
    written = 0
    for number, start in enumerate(range(0, size, SHARD)):
        items = torch.arange(start, min(start + SHARD, size))
        images = centres[items % len(centres)] + 0.7 * torch.randn(len(items), width, generator=generator)
        captions = images + 0.5 * torch.randn(len(items), width, generator=generator)
        for name, vectors in (("images", images), ("captions", captions)):
            file = folder / f"{name}-{number:03d}.npy"
            np.save(file, torch.nn.functional.normalize(vectors, dim=1).half().numpy())
            written += file.stat().st_size
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="pairs")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--queries", type=int, nargs="+", default=[2000, 18445])
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(prefix="lossscope-") as parent:
        folder = Path(parent) / "dump"
        folder.mkdir()
        read = write_shards(folder, options.size, options.width)
        for queries in options.queries:
            seconds, megabytes, rows = run_command(
                folder, ["--objective", OBJECTIVE, "--queries", str(queries), "--device", options.device]
            )
            (count,) = (row for row in rows if row["statistic"] == "C_neg" and row["direction"] == "i2t")
            interval = f"{count['mean']:.3f}, {count['low']:.3f} to {count['high']:.3f}"
            lines.append((str(queries), f"{seconds:.1f}", f"{megabytes:.0f}", interval))
    processor = machine(options.device).removeprefix("one thread of ")
    threads = f"{torch.get_num_threads()} threads of " if options.device == "cpu" else ""
    print(f"{options.size} x {options.size}, d = {options.width}, float16, {OBJECTIVE}; {threads}{processor}")
    print(f"reads {read / 1e6:.0f} MB\n")
    print(table(("queries", "s", "MB", "C_neg and its 95 % interval"), lines))


if __name__ == "__main__":
    main()
