"""How often does `lossscope diff` see a difference, if there is none, and if there is?

    python studies/intervals/diff_coverage.py            # half an hour on one core
    python studies/intervals/diff_coverage.py --replicates 100 --out /tmp/quick.csv

A replicate draws images and captions anew, with hubs among the images, and moves the captions by noise twice, for the
models A and B. Without a difference both have noise of the same size, and an interval of 95 % should exclude 0 in 5 %
of the replicates. With a known difference B has more noise, which changes its numbers. A row of diff_coverage.csv has,
for a statistic and direction, how often the interval excluded 0, and how often it held the true difference: the mean of
all replicates.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.paired_sweep import PairedSweep
from lossscope.engine.sweep import Sweep
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

RESULTS = Path(__file__).parent / "results" / "diff_coverage.csv"
IMAGES, CAPTIONS, WIDTH, BATCH = 300, 2, 24, 32
HUBS = {"none": 0.0, "mild": 0.5, "strong": 1.5}
APART, OWN = 0.8, 0.3  # noise that both sides share, and that each has alone
_KEY = ["objective", "direction", "statistic"]


@dataclass(frozen=True)
class Setting:
    """The options of a replicate."""

    hubs: str
    more: float = 1.0  # noise of B / noise of A

    def draw(self, seed: int) -> tuple[SplitEmbeddings, SplitEmbeddings]:
        """Return both models of a replicate."""
        generator = torch.Generator().manual_seed(seed)
        v = torch.nn.functional.normalize(torch.randn(IMAGES, WIDTH, generator=generator))
        v[:, 0] += 2 * HUBS[self.hubs] * torch.rand(IMAGES, generator=generator) ** 6
        v = torch.nn.functional.normalize(v)
        owner = torch.arange(IMAGES).repeat_interleave(CAPTIONS)

        def noise(size: float) -> Tensor:
            return size / math.sqrt(WIDTH) * torch.randn(len(owner), WIDTH, generator=generator)

        shared = v[owner] + noise(APART)
        t = [torch.nn.functional.normalize(shared + noise(OWN * more)) for more in (1.0, self.more)]
        ids = [f"a{i}" for i in range(IMAGES)], [f"b{i}" for i in range(len(owner))]
        a = SplitEmbeddings("A", v, t[0], None, owner.numpy(), *ids, "drawn")
        return a, replace(a, name="B", captions=t[1])


SETTINGS = (Setting("none"), Setting("mild"), Setting("strong"), Setting("none", 1.2), Setting("mild", 1.2))


def replicate(setting: Setting, seed: int) -> pd.DataFrame:
    """Return the differences of a replicate."""
    torch.set_num_threads(1)
    sweep = Sweep(("triplet", "ntxent:tau=0.05"), ("cocos:unit=paper", "similarity"), "pairs", BATCH, seed=seed)
    rows = PairedSweep(sweep, sweep).run(*setting.draw(seed)).rows
    rows["objective"] = rows["objective"].fillna("").str.partition(":")[0]
    return rows[[*_KEY, "difference", "low", "high"]]


def table(rows: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """Return a row for each statistic."""
    results = []
    for key, group in rows.groupby(_KEY, sort=False):
        with_interval = group[group["low"].notna()]
        if with_interval.empty:
            continue
        truth = group["difference"].mean()
        results.append({
            "hubs": setting.hubs, "noise_of_b": setting.more, **dict(zip(_KEY, key, strict=True)),
            "difference": truth, "sd": group["difference"].std(),
            "half_width": (with_interval["high"] - with_interval["low"]).mean() / 2,
            "excludes_0": 100 * ((with_interval["low"] > 0) | (with_interval["high"] < 0)).mean(),
            "coverage": 100 * ((with_interval["low"] <= truth) & (truth <= with_interval["high"])).mean(),
            "replicates": len(with_interval),
        })  # fmt: skip
    return pd.DataFrame(results)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    parts = []
    with ProcessPoolExecutor(options.processes) as pool:
        for setting in SETTINGS:
            seeds = range(1, options.replicates + 1)
            done = pool.map(replicate, [setting] * len(seeds), seeds, chunksize=10)
            parts.append(table(pd.concat(list(done), ignore_index=True), setting))
            print(setting, parts[-1].round(4).to_string(), sep="\n", flush=True)
            write_text(options.out, format_csv(pd.concat(parts, ignore_index=True)))


if __name__ == "__main__":
    main()
