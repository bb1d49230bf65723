"""Do the intervals of a sweep hold? Draw split after split, sweep each, and count how often the truth is inside.

    python studies/intervals/coverage.py --out studies/intervals/results    # hours on one core
    python studies/intervals/coverage.py --out /tmp/quick --replicates 100

A replicate draws items anew: images with captions, or queries with one to three documents. Hubs, which lie near a
common direction, are violating candidates of many queries. The truth of a setting is the mean over all its replicates.
The script writes coverage.csv, a row for each setting and statistic.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.engine.sweep import Sweep

HUBS = {"none": 0.0, "mild": 0.5, "strong": 1.5}
WIDTH, NOISE = 24, 0.9
SHOWN = ("C_q", "C_neg", "W_neg", "N_eff", "s_neg_q90")
_OBJECTIVE_OF = {"C_q": "triplet", "C_neg": "ntxent", "W_neg": "ntxent", "N_eff": "ntxent"}


@dataclass(frozen=True)
class Setting:
    """The items of a replicate, and its batches."""

    data: str  # `image-caption` or `query-document`
    hubs: str
    batch_size: int

    @property
    def items(self) -> tuple[int, int]:
        """Return the number of images (or queries), and of captions (or documents, at most) of each."""
        if self.batch_size > 100:
            return 1000, 2
        return (600, 5) if self.data == "image-caption" else (1200, 3)

    def draw(self, seed: int) -> SplitEmbeddings:
        """Return the split of a replicate."""
        generator = torch.Generator().manual_seed(seed)
        n, k = self.items
        first = _with_hubs(torch.randn(n, WIDTH, generator=generator), HUBS[self.hubs], generator)
        if self.data == "image-caption":
            owners = torch.arange(n).repeat_interleave(k)
        else:
            owners = torch.arange(n).repeat_interleave(torch.randint(1, k + 1, (n,), generator=generator))
        noise = NOISE / math.sqrt(WIDTH) * torch.randn(len(owners), WIDTH, generator=generator)
        second = torch.nn.functional.normalize(first[owners] + noise)
        ids = [f"a{i}" for i in range(n)], [f"b{i}" for i in range(len(owners))]
        if self.data == "image-caption":
            return SplitEmbeddings("drawn", first, second, None, owners.numpy(), *ids, "drawn")
        pairs = np.stack([owners.numpy(), np.arange(len(owners))], 1)
        relations = Relations(n, len(owners), pairs, Sides("query", "document"))
        return SplitEmbeddings("drawn", first, second, None, None, *ids, "drawn", relations=relations)


def _with_hubs(x: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Return unit vectors; hubs among them are moved towards the first axis."""
    x = torch.nn.functional.normalize(x)
    x[:, 0] += 2 * strength * torch.rand(len(x), generator=generator) ** 6
    return torch.nn.functional.normalize(x)


def replicate(setting: Setting, seed: int) -> pd.DataFrame:
    """Return the summary rows of a replicate."""
    torch.set_num_threads(1)
    objectives, probes = ("triplet", "ntxent:tau=0.05"), ("cocos:unit=paper", "similarity")
    sweep = Sweep(objectives, probes, "pairs", setting.batch_size, seed=seed)
    rows = sweep.run(setting.draw(seed)).summary
    rows["objective"] = rows["objective"].fillna("").str.partition(":")[0]
    return rows[["objective", "direction", "statistic", "mean", "std", "n", "low", "high"]].assign(seed=seed)


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each statistic: how often its interval, and that from the deviation over batches, holds."""
    table = []
    for keys, group in rows.groupby(["objective", "direction", "statistic"], sort=False):
        truth, defined = group["mean"].mean(), group["low"].notna()
        half = 1.96 * group["std"] / np.sqrt(group["n"])
        with_interval = group[defined]
        if with_interval.empty:
            continue
        table.append({
            **dict(zip(("objective", "direction", "statistic"), keys, strict=True)),
            "truth": truth, "sd": group["mean"].std(),
            "half_width": (with_interval["high"] - with_interval["low"]).mean() / 2,
            "coverage": 100 * ((with_interval["low"] <= truth) & (truth <= with_interval["high"])).mean(),
            "coverage_batches": 100 * ((group["mean"] - truth).abs() <= half).mean(), "replicates": len(with_interval),
        })  # fmt: skip
    return pd.DataFrame(table)


def settings(only: str | None) -> Iterator[Setting]:
    """Yield all settings, or those with this text in their name."""
    for data, size, hubs in product(("image-caption", "query-document"), (32, 512), HUBS):
        if only is None or only in f"{data} {size} {hubs}":
            yield Setting(data, hubs, size)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", help="Part of the name of settings, as `image-caption 32`.")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = []
    seeds = range(options.first_seed, options.first_seed + options.replicates)
    with ProcessPoolExecutor(options.processes) as pool:
        for setting in settings(options.only):
            done = pool.map(replicate, [setting] * len(seeds), seeds, chunksize=10)
            of_setting = coverage(pd.concat(list(done), ignore_index=True))
            labels: dict[str, Any] = {"data": setting.data, "hubs": setting.hubs, "batch_size": setting.batch_size}
            parts.append(of_setting.assign(**labels))
            shown = of_setting[of_setting["statistic"].isin(SHOWN)]
            shown = shown[(shown["objective"] == shown["statistic"].map(_OBJECTIVE_OF)) | (shown["objective"] == "")]
            print(setting, shown.round(4).to_string(), sep="\n", flush=True)
            rows = pd.concat(parts, ignore_index=True)
            first = list(labels)
            rows[[*first, *(name for name in rows if name not in first)]].to_csv(
                options.out / "coverage.csv", index=False, float_format="%.6g"
            )


if __name__ == "__main__":
    main()
