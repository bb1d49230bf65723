"""One count per run and direction beside its score, whichever statistic the loss counts by."""

from __future__ import annotations

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.scores import score_rows

from .base import ReportData, panel

_COUNTS = ("C_q_all", "C_neg")  # mean over all queries, of triplets or of negatives


def counts_and_score(data: ReportData) -> pd.DataFrame:
    """Return label, panel, direction, seed, run, count, and rsum or nDCG@10: a row per run and direction.

    Counts are per query.

    Raises InputError where runs were counted with several eps, or one label names several losses or data sets.
    """
    rows = data.corrected_rows("cocos")
    _require_alike(rows)
    counts = rows[rows["statistic"].isin(_COUNTS)].drop_duplicates(["run", "direction"])
    score = score_rows(data.results.rows).set_index("run")["mean"]
    columns = {
        "label": counts["objective_label"],
        "panel": panel(counts),
        "direction": counts["direction"],
        "seed": counts["seed"],
        "run": counts["run"],
        "count": counts["mean"],
        data.score.name: counts["run"].map(score),
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def batches_of(rows: pd.DataFrame) -> str:
    """Return `Batches: NT-Xent, Triplet 128 pairs; SmoothAP 32 images.`, as counts depend on the size of batches."""
    with_size = rows.dropna(subset=["batch_size"])
    each = [
        f"{', '.join(map(str, group['objective_label'].unique()))} {size:g} {sampling}"
        for (size, sampling), group in with_size.groupby(["batch_size", "sampling"], sort=False, observed=True)
    ]
    mixed = " Counts in different batches are over different numbers of candidates." if has_mixed_batches(rows) else ""
    return f"Batches: {'; '.join(each)}.{mixed}" if each else ""


def has_mixed_batches(rows: pd.DataFrame) -> bool:
    """Return whether counts are of batches of several sizes or samplings."""
    return len(rows.dropna(subset=["batch_size"]).drop_duplicates(["batch_size", "sampling"])) > 1


def _require_alike(rows: pd.DataFrame) -> None:
    thresholds = sorted(rows["eps"].dropna().unique())
    if len(thresholds) > 1:
        listed = "; ".join(f"{eps:g} ({rows.loc[rows['eps'] == eps, 'run'].iloc[0]}, ...)" for eps in thresholds)
        raise InputError(f"runs in one picture must have one eps; got {listed}. Report them separately")
    for label, column in (("objective_label", "spec"), ("data", "data_fingerprint")):
        for name, group in rows.groupby(label, sort=False, observed=True):
            if column in group and group[column].nunique() > 1:
                listed = ", ".join(map(str, group[column].unique()[:3]))
                raise InputError(f"{column} of {name!r} must be one; got {listed}. Give them different names")
