"""Rows of an invented study, whose means can be computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import pandas as pd

SPECS = {
    "Triplet": "triplet:margin=0.2",
    "Triplet SH": "triplet_sh:margin=0.2",
    "NT-Xent": "ntxent:tau=0.1",
    "SmoothAP": "smoothap:tau=0.01",
}
FROZEN = {"VSE++": "VSE++ (ResNet50, frozen)"}
SCENES = {"scenes, ambiguity 0.1": "flickr30k"}
COUNTS = {"triplet": ("C_q", "C_B", "C_0"), "triplet_sh": ("C_q", "C_B", "C_0"), "smoothap": ("C_q", "C_0")}
IMAGES = {"mscoco": 5000, "flickr30k": 1000, "msrvtt": 2990}  # of the papers' test splits
NEGATIVES = ("C_neg", "W_neg", "W_pos", "C_0")


def rows_of_run(labels: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """R@1 = 30 + 2 · place + seed, R@5 20 and R@10 30 above it, mAP 0.4; counts 10 + place + seed, released 1 less."""
    name, seed = str(labels["spec"]).partition(":")[0], labels["seed"] or 0
    recall = {"probe": "recall", "convention": None, "eps": None, "batch_size": None, "sampling": "test split"}
    rows = []
    images = IMAGES.get(labels["dataset"], 100)
    for side, queries in (("i2t", images), ("t2i", 5 * images)):
        common = {**labels, **recall, "direction": side, "std": None, "n": queries, "n_defined": queries, "unit": "%"}
        first = 30.0 + 2 * number + seed
        levels = {"R@1": first, "R@5": first + 20, "R@10": first + 30, "mAP@5": 0.3, "mAP@5_hits": 0.4}
        rows += [{**common, "statistic": statistic, "mean": mean} for statistic, mean in levels.items()]
    rows.append({**rows[0], "direction": "both", "statistic": "rsum", "mean": 2 * (3 * first + 50)})
    cocos = {"probe": "cocos", "eps": 0.01, "batch_size": 128, "std": 0.5, "n": 24, "n_defined": 24, "unit": "samples"}
    sampling = "images" if name == "smoothap" else "pairs"
    for less, convention in enumerate(("corrected", "released", "text")[: 3 if name == "smoothap" else 2]):
        common = {
            **labels,
            **cocos,
            "sampling": sampling,
            "convention": convention,
            "mean": 10.0 + number + seed - less,
        }
        rows += [
            {**common, "direction": side, "statistic": statistic}
            for side in ("i2t", "t2i")
            for statistic in COUNTS.get(name, NEGATIVES)
        ]
    return rows


def study(
    specs: Mapping[str, str] = SPECS,
    encoders: Mapping[str, str | None] = FROZEN,
    data: Mapping[str, str | None] = SCENES,
    seeds: Sequence[int | None] = (0, 1, 2),
) -> pd.DataFrame:
    """Return losses x encoders x data x seeds -> rows of `recall` and `cocos`, as those of a study."""
    return _study(*(tuple(names.items()) for names in (specs, encoders, data)), tuple(seeds)).copy()


@cache
def _study(
    specs: Sequence[tuple[str, str]],
    encoders: Sequence[tuple[str, str | None]],
    data: Sequence[tuple[str, str | None]],
    seeds: Sequence[int | None],
) -> pd.DataFrame:
    rows = []
    for (label, dataset), (encoder, method), (number, (name, spec)), seed in product(
        data, encoders, enumerate(specs), seeds
    ):
        labels = {"data": label, "encoder": encoder, "objective_label": name}
        run = f"{label}/{encoder}/{name}/{seed}"
        names = {"run": run, "source": run, "dataset": dataset, "method": method, "seed": seed}
        rows += rows_of_run({**labels, **names, "spec": spec, "objective": spec}, number)
    return pd.DataFrame(rows)
