"""Which losses were never trained with, because every epoch of their runs is of the warm-up?"""

from __future__ import annotations

import pandas as pd

Key = tuple[str, str, str]  # data, encoder, objective_label


def warmup_alone(epochs: pd.DataFrame) -> dict[Key, str]:
    """Return the loss that trained instead, of each loss all of whose epochs, in all its runs, are of the warm-up.

    Args:
        epochs: with a column warmup, the loss of an epoch of the warm-up, None in all others.
    """
    if "warmup" not in epochs:
        return {}
    trained = epochs[epochs["epoch"] > 0]
    grouped = trained.groupby(["data", "encoder", "objective_label"], sort=False, observed=True)["warmup"]
    return {key: str(group.iloc[0]) for key, group in grouped if group.notna().all()}  # type: ignore[misc]
