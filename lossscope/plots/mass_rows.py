"""The weight on the negatives of each loss, direction and seed: shares, totals and concentration."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.errors import InputError

from . import directions, style

COLUMNS = ("label", "direction", "statistic", "mean")
PARTS = ("W_neg", "W_low")  # of the weight on the negatives of a query: above eps, and up to it
STATISTICS = (*PARTS, "N_eff")
_NAME = "weight_mass"


def per_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return label, direction, seed, share (per cent), total, N_eff: a row per loss, direction and seed."""
    wide = rows.pivot(index=["label", "direction", "seed"], columns="statistic", values="mean")  # noqa: PD010
    wide = wide.reindex(columns=list(STATISTICS))
    total = wide["W_neg"] + wide["W_low"]
    numbers = pd.DataFrame({"share": 100 * wide["W_neg"] / total.replace(0, np.nan), "total": total})
    numbers["N_eff"] = wide["N_eff"]
    ordered: pd.DataFrame = numbers.loc[_keys(rows, ["label", "direction", "seed"])].reset_index()
    return ordered


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row per (label, direction), in the order of the frame, with the mean over seeds of each statistic."""
    wide = rows.pivot_table(index=["label", "direction"], columns="statistic", values="mean", observed=True)
    return wide.reindex(columns=list(STATISTICS)).loc[_keys(rows, ["label", "direction"])]


def _keys(rows: pd.DataFrame, columns: list[str]) -> list[tuple[object, ...]]:
    """Return the different values of some columns, those of a label together, in the order of the frame."""
    keys = rows[columns].drop_duplicates().sort_values("label", key=lambda of: pd.factorize(of)[0], kind="stable")
    return list(keys.itertuples(index=False, name=None))


def valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the known rows of STATISTICS, with a seed.

    Raises InputError for other columns or directions, duplicates, or when no weight on negatives is known.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    directions.require_directions(frame)
    rows = frame[frame["statistic"].isin(STATISTICS)]
    if rows.loc[rows["statistic"].isin(PARTS), "mean"].dropna().empty:
        raise InputError(f"frame of {_NAME} must have W_neg or W_low; got neither. Run the probe weight_mass")
    rows = rows if "seed" in rows else rows.assign(seed=0)
    if rows.duplicated(["label", "direction", "statistic", "seed"]).any():
        raise InputError(
            f"frame of {_NAME} must hold each statistic of a loss, direction and seed once; got some twice. "
            "Distinguish them in `label`"
        )
    return rows.dropna(subset=["mean"])
