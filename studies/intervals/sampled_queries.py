"""Does the interval of a sample of queries hold the number of all queries? On a set with a full sweep.

    python studies/intervals/sampled_queries.py

The set has 800 images and 2,400 captions with hubs; each size has 1,000 samples, seeds 0 to 999. A row of
results/sampled_queries.csv has, for a statistic, direction and size, the number of samples whose interval held the full
number, the root mean square error, and that error times √(n / (1 − n/N)), which is constant if errors fall as they
should.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

RESULTS = Path(__file__).parent / "results" / "sampled_queries.csv"
IMAGES, CAPTIONS, WIDTH = 800, 3, 24
SIZES = (50, 100, 200, 400, 800, 1600)
REPETITIONS = 1000
OBJECTIVES = ("ntxent:tau=0.05", "triplet")
PROBES = ("cocos:unit=paper", "similarity")
STATISTICS = ("C_neg", "W_neg", "N_eff", "C_q", "C_0", "margin_q50", "inverted")
_KEY = ["objective", "direction", "statistic"]


def hubs_and_others(seed: int = 0) -> SplitEmbeddings:
    """Return a set in which 1 image in 8 is near a common direction, a hard negative of many captions."""
    generator = torch.Generator().manual_seed(seed)
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    v = torch.randn(IMAGES, WIDTH, generator=generator)
    common = torch.randn(WIDTH, generator=generator)
    v[::8] += 1.5 * common
    t = v[owner] + 0.8 * torch.randn(len(owner), WIDTH, generator=generator) + 0.3 * common
    v, t = (torch.nn.functional.normalize(x, dim=1) for x in (v, t))
    ids = [[str(i) for i in range(len(x))] for x in (v, t)]
    return SplitEmbeddings("hubs", v, t, None, owner, ids[0], ids[1], "made")


def summary(embedded: SplitEmbeddings, queries: int | None, seed: int) -> pd.DataFrame:
    """Return the summary rows of the examined statistics."""
    rows = Sweep(OBJECTIVES, PROBES, batch_size=None, queries=queries, seed=seed).run(embedded).summary
    return rows[rows["statistic"].isin(STATISTICS)].fillna({"objective": "any"})


def coverage(repetitions: int = REPETITIONS, sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """Return a row per size, objective, direction and statistic."""
    embedded = hubs_and_others()
    full = dict(summary(embedded, None, 0).set_index(_KEY)["mean"].items())
    population, rows = IMAGES * CAPTIONS, []
    for n in sizes:
        samples = pd.concat([summary(embedded, n, seed) for seed in range(repetitions)])
        for key, group in samples.groupby(_KEY, sort=False):
            truth = float(full[key])
            error = float(np.sqrt(np.square(group["mean"] - truth).mean()))
            holds = ((group["low"] <= truth + 1e-9) & (truth - 1e-9 <= group["high"])).sum()
            rows.append({
                **dict(zip(["n", "N", *_KEY], [n, population, *key], strict=True)),
                "full": truth, "method": group["method"].iloc[0], "repetitions": repetitions,
                "without": int(group["low"].isna().sum()), "held": int(holds),
                "error": error, "error_per_query": error * (n / (1 - n / population)) ** 0.5,
                "half_width": float((group["high"] - group["low"]).mean()) / 2,
            })  # fmt: skip
    return pd.DataFrame(rows)


if __name__ == "__main__":
    write_text(RESULTS, format_csv(coverage()))
