"""Is a count of the loss or of the model? Every loss is counted at the optimum of every loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import t as student

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

STATISTICS = ("C_neg", "N_eff", "W_neg", "share_above")
_SAME = {"C_q_all": "C_neg"}  # statistic of some losses -> its name: negatives above eps, over all queries
_OF_PROBE = {"C_neg": "cocos", "N_eff": "cocos", "W_neg": "weight_mass", "share_above": "weight_mass"}
COLUMNS = (
    "objective", "trained_with", "direction", "statistic", "mean", "low", "high", "level", "models", "method", "unit",
    "weight_unit", "eps", "batch_size", "sampling", "split", "seed",
)  # fmt: skip
SHARES = ("direction", "statistic", "scale", "of_loss", "of_model", "of_both", "on_diagonal")


def transfer(summary: pd.DataFrame, trained_with: Mapping[str, str], split: str | None = None) -> pd.DataFrame:
    """Return a row for each counted loss, training loss, direction and statistic, with COLUMNS.

    `mean` is over the models that were trained with a loss. With two or more, low..high is a t-interval over them;
    with a single model it is that of the sweep, over items.

    Args:
        summary: summary rows of `cocos` and `weight_mass`, every loss on every source.
        trained_with: name of each source -> spec of the loss that it was trained with.
        split: of the sources.

    Raises:
        InputError: fewer than two losses were trained with, or a source has no entry.
    """
    require_columns(summary, ["source", "objective", "direction", "probe", "statistic", "mean", "low", "high"], "rows")
    unknown = sorted(set(summary["source"]) - set(trained_with))
    if unknown:
        raise InputError(f"each source must say what it was trained with; {', '.join(unknown)} does not")
    if len(set(trained_with.values())) < 2:
        raise InputError(
            f"sources must be trained with two losses or more; got {', '.join(sorted(set(trained_with.values())))}. "
            "Add a checkpoint of another loss"
        )
    rows = summary.assign(
        statistic=summary["statistic"].replace(_SAME), trained_with=summary["source"].map(dict(trained_with))
    )
    rows = rows[rows["statistic"].map(_OF_PROBE) == rows["probe"]].dropna(subset=["mean"])
    keys = ["objective", "trained_with", "direction", "statistic"]
    found = [
        {**dict(zip(keys, key, strict=True)), **_mean_of_models(models), "split": split}
        for key, models in rows.groupby(keys, sort=False, observed=True)
    ]
    order = {name: number for number, name in enumerate(STATISTICS)}
    frame = pd.DataFrame(found, columns=list(COLUMNS))
    return frame.sort_values("statistic", key=lambda names: names.map(order), kind="stable").reset_index(drop=True)


def _mean_of_models(models: pd.DataFrame) -> dict[str, object]:
    """Return the mean over models of a loss, and its interval."""
    first, means = models.iloc[0], models["mean"].to_numpy(float)
    found: dict[str, object] = {"mean": float(means.mean()), "models": len(means)}
    found |= {name: first.get(name) for name in ("unit", "weight_unit", "eps", "batch_size", "sampling", "seed")}
    if len(means) == 1:
        return found | {name: first.get(name) for name in ("low", "high", "level", "method")}
    level = 0.95 if pd.isna(first.get("level")) else float(first["level"])
    half = float(student.ppf((1 + level) / 2, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)))
    return found | {
        "low": float(means.mean()) - half, "high": float(means.mean()) + half, "level": level,
        "method": f"t over {len(means)} models",
    }  # fmt: skip


def effect_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how much of the differences is of the loss that is counted, of the model, and of both: columns SHARES.

    The table of counted losses x training losses is the sum of its mean, an effect of each row, one of each column, and
    a rest. `of_loss`, `of_model` and `of_both` are the shares of the sum of squares of the three; they add up to 1, and
    are NaN where all numbers are equal. Counts and weights above 0 are compared as logarithms (`scale` log), because
    losses differ by factors. `on_diagonal` is the mean of the rest where a loss is counted at its own optimum, in units
    of the scale: how far a paper's numbers are from what loss and model say alone. Tables with a gap are left out.

    Args:
        frame: result of `transfer`.
    """
    found = []
    for (direction, statistic), rows in frame.groupby(["direction", "statistic"], sort=False, observed=True):
        table = rows.pivot_table(index="objective", columns="trained_with", values="mean", sort=False)
        values = table.to_numpy(float)
        if np.isnan(values).any() or min(values.shape) < 2:
            continue
        scale = "log" if (values > 0).all() else "linear"
        values = np.log(values) if scale == "log" else values
        of_rows, of_columns = (values.mean(axis, keepdims=True) - values.mean() for axis in (1, 0))
        rest = values - values.mean() - of_rows - of_columns
        squares = [float((np.broadcast_to(part, values.shape) ** 2).sum()) for part in (of_rows, of_columns, rest)]
        total = sum(squares) if values.max() > values.min() else np.nan
        is_own = table.index.to_numpy()[:, None] == table.columns.to_numpy()[None, :]
        diagonal = float(rest[is_own].mean()) if is_own.any() else np.nan
        found.append((direction, statistic, scale, *(part / total for part in squares), diagonal))
    return pd.DataFrame(found, columns=list(SHARES))
