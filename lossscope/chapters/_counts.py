"""One count per run and direction, beside its rsum, whatever the loss calls its count."""

from __future__ import annotations

import pandas as pd

from .base import Material, panel

_COUNTS = ("C_q_all", "C_neg")  # mean over all queries, of triplets or of negatives


def counts(material: Material) -> pd.DataFrame:
    """Columns label, panel, direction, seed, run, count, rsum: a row per run and direction, counted per query."""
    rows = material.corrected("cocos")
    beside = rows[rows["statistic"].isin(_COUNTS)].drop_duplicates(["run", "direction"])
    recall = material.results.rows
    rsum = recall[(recall["statistic"] == "rsum") & (recall["probe"] == "recall")].set_index("run")["mean"]
    return pd.DataFrame({
        "label": beside["trained"], "panel": panel(beside), "direction": beside["direction"], "seed": beside["seed"],
        "run": beside["run"], "count": beside["mean"], "rsum": beside["run"].map(rsum),
    }).reset_index(drop=True)  # fmt: skip
