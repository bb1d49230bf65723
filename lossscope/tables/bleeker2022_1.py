"""How well does each model retrieve, trained with each loss? Ours beside Table 1 of Bleeker & de Rijke (2022).

Average recall is the mean of R@1, R@5 and R@10 of a run. The paper's mAP@5 divides by the hits among the first 5.
"""

from __future__ import annotations

import pandas as pd

from ._paper import RSUM, Measure, Paper, recalls

_MEAN = "average recall"


def _with_average_recall(rows: pd.DataFrame) -> pd.DataFrame:
    """Add rows of average recall; a run that lacks one of the recalls gets none."""
    recall_rows = rows[rows["statistic"].isin(("R@1", "R@5", "R@10"))]
    parts = recall_rows.groupby(["run", "direction", "sampling"], sort=False, dropna=False)
    means = [
        {**part.iloc[0].to_dict(), "statistic": _MEAN, "mean": part["mean"].mean(skipna=False)}
        for _, part in parts
        if len(part) == 3
    ]
    return pd.DataFrame([*rows.to_dict("records"), *means], columns=rows.columns)


_I2T = (
    *recalls("i2t"),
    Measure("i2t", _MEAN, "average_recall", better="higher"),
    Measure("i2t", "mAP@5_hits", "mAP@5", digits=2, better="higher"),
    Measure("i2t", "mAP@5", "none", digits=2, better="higher"),
)
_T2I = (*recalls("t2i"), Measure("t2i", _MEAN, "average_recall", better="higher"), RSUM)
_UNITS = (
    "Recall in %, rsum (the sum of the six recalls) in points; mAP@5_hits in [0, 1] divides by the hits among the "
    "first 5, mAP@5 by min(5, number of relevant)."
)
build = Paper(
    "bleeker2022", 1, "recall", {"-i2t": _I2T, "-t2i": _T2I}, _UNITS, any_objective=True, derived=_with_average_recall
).build
