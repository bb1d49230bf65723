"""Answer the questions of PLAN.md from results.csv: `python studies/law/analyse.py` writes reports/law.

The numbers are in contrasts.csv, counts.csv, doses.csv, turns.csv and skills.csv; README.md and law.png show them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from design import FEW_OBJECTIVES, FEW_RATES, KEPT, OBJECTIVES, RATES, design
from predictors import PREDICTORS
from scipy.stats import rankdata
from scipy.stats import t as student

from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

REPORT = Path(__file__).parents[2] / "reports" / "law"
RESULTS = Path(__file__).parent / "results.csv"
ALPHA = 0.05
RESAMPLES, SEED = 4000, 0
OUTCOME = "rsum"
_CELL = ["data", "rate", "encoder", "batch", "seed", "start", "objective"]
_LOWEST = 0.001  # percent at which rate 0 stands on a logarithmic scale
Values = npt.NDArray[np.float64]


def differences(rows: pd.DataFrame, kept: str) -> pd.DataFrame:
    """Return rsum(kept) − rsum(all) of each pair of runs that differ in nothing else, as column `difference`."""
    of_kept = rows[rows["kept"] == kept].set_index(_CELL)[OUTCOME]
    of_all = rows[rows["kept"] == "all"].set_index(_CELL)[OUTCOME]
    return (of_kept - of_all).dropna().rename("difference").reset_index()


def t_line(values: Values) -> dict[str, float]:
    """Return n, mean, low, high (95 %) and two-sided p of a t-test of values against 0."""
    n, mean = len(values), float(values.mean()) if len(values) else math.nan
    if n < 2 or values.std() == 0:
        return {"n": n, "mean": mean, "low": math.nan, "high": math.nan, "p": math.nan}
    error = float(values.std(ddof=1)) / math.sqrt(n)
    half = float(student.ppf(1 - ALPHA / 2, n - 1)) * error
    return {
        "n": n,
        "mean": mean,
        "low": mean - half,
        "high": mean + half,
        "p": float(2 * student.sf(abs(mean / error), n - 1)),
    }


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values of a family, adjusted by Holm's steps."""
    order, adjusted, largest = np.argsort(p), [math.nan] * len(p), 0.0
    for step, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - step) * p[index]))
        adjusted[index] = largest
    return adjusted


def per_seed(found: pd.DataFrame) -> Values:
    """Return the mean difference of each seed that has a difference in every cell."""
    cells = [column for column in _CELL if column != "seed"]
    table = found.pivot_table(index="seed", columns=cells, values="difference", observed=True)
    return table.dropna().mean(axis=1).to_numpy(float)


def contrasts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return H1, H2 and their parts: the mean difference of top 1 to all, over seeds; columns of `t_line`, p_holm."""
    core = rows[(rows["start"] == "strong") & (rows["batch"] == 128) & (rows["encoder"] == 0)]
    core = core[core["objective"].isin(FEW_OBJECTIVES)]
    found = differences(core, "top 1")
    lines = []
    for rate in FEW_RATES:
        at_rate = found[found["rate"] == rate]
        lines.append({"family": "H1", "what": f"top 1 - all at {rate:g} %", **t_line(per_seed(at_rate))})
    ends = [found[found["rate"] == rate].groupby("seed")["difference"].mean() for rate in (FEW_RATES[-1], FEW_RATES[0])]
    lines.append(
        {
            "family": "H2",
            "what": "(top 1 - all at 8 %) - (at 0 %)",
            **t_line((ends[0] - ends[1]).dropna().to_numpy(float)),
        }
    )
    for data, objective, rate in itertools.product(found["data"].unique(), FEW_OBJECTIVES, FEW_RATES):
        part = found[(found["data"] == data) & (found["objective"] == objective) & (found["rate"] == rate)]
        lines.append(
            {"family": "parts", "what": f"{data}, {objective}, top 1 - all at {rate:g} %", **t_line(per_seed(part))}
        )
    lines += _other_blocks(rows)
    frame = pd.DataFrame(lines)
    for family in ("H1", "H2", "parts", "tail"):
        of_family = frame["family"] == family
        frame.loc[of_family, "p_holm"] = holm(frame.loc[of_family, "p"].fillna(1.0).tolist())
    return frame


def _other_blocks(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the same difference in the other blocks, and what the tail says; no claim rests on them alone."""
    lines: list[dict[str, object]] = []
    settings: dict[str, tuple[str, object]] = {
        "batch 32": ("batch", 32), "batch 512": ("batch", 512), "encoder 1": ("encoder", 1),
        "weak start": ("start", "weak"), "no start": ("start", "none"),
    }  # fmt: skip
    for (name, (column, value)), data, rate, kept in itertools.product(
        settings.items(), ("scenes", "passages"), FEW_RATES, ("top 1", "top 5")
    ):
        part = rows[(rows[column] == value) & (rows["data"] == data) & (rows["rate"] == rate)]
        found = differences(part, kept)
        if len(found):
            lines.append({"family": "elsewhere", **_named(f"{name}, {data}, {kept}", rate), **t_line(per_seed(found))})
    core = rows[(rows["start"] == "strong") & (rows["batch"] == 128) & (rows["encoder"] == 0)]
    for kept, data, rate in itertools.product(("tail 1", "tail 5", "above 0.01"), ("scenes", "passages"), FEW_RATES):
        part = core[(core["data"] == data) & (core["rate"] == rate) & (core["objective"] == "NT-Xent")]
        found = differences(part, kept)
        lines.append({"family": "tail", **_named(f"NT-Xent, {data}, {kept}", rate), **t_line(per_seed(found))})
    return lines


def _named(cell: str, rate: float) -> dict[str, object]:
    return {"what": f"{cell} - all at {rate:g} %", "cell": cell, "rate": rate}


def counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what the parts of a loss change: means at epoch 1 of the predictors, by loss and kept, of the main block.

    `false_weight` is of the largest rate alone.
    """
    main = rows[rows["block"] == "main"]
    means = main.groupby(["objective", "kept"])[["C_neg", "N_eff", "k95"]].mean()
    largest = main[main["rate"] == RATES[-1]].groupby(["objective", "kept"])["false_weight"].mean()
    order = list(itertools.product(OBJECTIVES, KEPT))
    return means.join(largest).reindex(order).rename_axis(["objective", "kept"]).reset_index()


def doses(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rsum(top k) − rsum(all) for each data, objective, rate and k of the main block, with t over seeds."""
    main, lines = rows[rows["block"].isin(["main", "seeds"])], []
    for data, objective, rate, kept in itertools.product(("scenes", "passages"), OBJECTIVES, RATES, KEPT[:-1]):
        part = main[(main["data"] == data) & (main["objective"] == objective) & (main["rate"] == rate)]
        found = differences(part, kept)
        of_all = part[part["kept"] == "all"][OUTCOME].mean()
        lines.append({
            "data": data, "objective": objective, "rate": rate, "kept": kept, "all": of_all, **t_line(per_seed(found))
        })  # fmt: skip
    return pd.DataFrame(lines)


def turns(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rate at which top 1 − all changes its sign, for each data and objective, with a bootstrap over seeds.

    The mean difference is linear in the logarithm of the rate between two rates, and 0 % stands at 0.001 %. NaN where
    all five means have one sign; `turned` is the share of the resamples with a change.
    """
    main, lines = rows[rows["block"].isin(["main", "seeds"])], []
    rng = np.random.default_rng(SEED)
    for data, objective in itertools.product(("scenes", "passages"), OBJECTIVES):
        part = main[(main["data"] == data) & (main["objective"] == objective)]
        found = differences(part, "top 1")
        table = found.pivot_table(index="seed", columns="rate", values="difference").reindex(columns=list(RATES))
        values = table.to_numpy(float)
        drawn = [_turn(values[rng.integers(0, len(values), len(values))]) for _ in range(RESAMPLES)]
        known = np.array([rate for rate in drawn if not math.isnan(rate)])
        low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (math.nan, math.nan)
        lines.append({
            "data": data, "objective": objective, "rate": _turn(values), "low": low, "high": high,
            "turned": len(known) / RESAMPLES, "at_0": np.nanmean(values[:, 0]), "at_8": np.nanmean(values[:, -1]),
        })  # fmt: skip
    return pd.DataFrame(lines)


def _turn(values: Values) -> float:
    """Return the first rate at which the column means of (seeds, rates) cross 0; NaN where they do not.

    Rates that no seed of a resample has are passed over.
    """
    number = (~np.isnan(values)).sum(0)
    means = np.nansum(values, 0)[number > 0] / number[number > 0]
    logs = np.log10([max(rate, _LOWEST) for rate in RATES])[number > 0]
    for left in range(len(means) - 1):
        a, b = means[left], means[left + 1]
        if a * b < 0:
            return float(10 ** (logs[left] + (logs[left + 1] - logs[left]) * a / (a - b)))
    return math.nan


def skills(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how well each predictor at epoch 1 says the final rsum of a left-out loss: columns predictor, skill, ...

    Within each (data, rate, seed) the 20 runs of the main block have ranks of the predictor, scaled to −½..½, and rsum
    less its mean. A line through 0 is fitted on three losses and predicts the fourth: skill = 1 − Σ (y − ŷ)² / Σ y².
    Its interval is a bootstrap over the groups. `ceiling` is the skill of the mean of the other seeds of the same run.
    """
    main = rows[rows["block"] == "main"]
    groups = [_ranked(group) for _, group in main.groupby(["data", "rate", "seed"], sort=False)]
    rng = np.random.default_rng(SEED)
    drawn = [rng.integers(0, len(groups), len(groups)) for _ in range(RESAMPLES)]
    lines, resampled = [], {}
    for name in PREDICTORS:
        sums = _left_out_sums(groups, name)
        resampled[name] = np.array([_skill(sums[picked]) for picked in drawn])
        low, high = np.quantile(resampled[name], [0.025, 0.975])
        by_data = {
            f"skill_{data}": _skill(sums[[group["data"].iloc[0] == data for group in groups]])
            for data in ("scenes", "passages")
        }
        lines.append(
            {"predictor": name, "groups": len(groups), "skill": _skill(sums), "low": low, "high": high, **by_data}
        )
    frame = pd.DataFrame(lines).sort_values("skill", ascending=False, kind="stable").reset_index(drop=True)
    best = frame["predictor"].iloc[0]
    for index, name in enumerate(frame["predictor"]):
        gap = resampled[best] - resampled[name]
        frame.loc[index, ["behind_low", "behind_high"]] = np.quantile(gap, [0.025, 0.975])
    return frame.assign(ceiling=_ceiling(main))


def _ranked(group: pd.DataFrame) -> pd.DataFrame:
    """Return the group with y and, for each predictor, its rank among the runs that have one."""
    ranks = {name: rankdata(group[name], nan_policy="omit") for name in PREDICTORS}
    scaled = {f"rank_{name}": np.nan_to_num((r - 1) / max(len(r) - 1, 1) - 0.5) for name, r in ranks.items()}
    return group.assign(y=group[OUTCOME] - group[OUTCOME].mean(), **scaled)


def _left_out_sums(groups: Sequence[pd.DataFrame], name: str) -> Values:
    """Return (groups, losses, 3): Σ x², Σ x y, Σ y² of the runs of each loss."""
    sums = np.zeros((len(groups), len(OBJECTIVES), 3))
    for row, group in enumerate(groups):
        for column, objective in enumerate(OBJECTIVES):
            part = group[group["objective"] == objective]
            x, y = part[f"rank_{name}"].to_numpy(float), part["y"].to_numpy(float)
            sums[row, column] = (x * x).sum(), (x * y).sum(), (y * y).sum()
    return sums


def _skill(sums: Values) -> float:
    """1 − Σ (y − b x)² / Σ y², b fitted without the loss that it predicts."""
    total = sums.sum(0)
    xx, xy, yy = total[:, 0], total[:, 1], total[:, 2]
    slope = (xy.sum() - xy) / (xx.sum() - xx)
    return float(1 - (yy - 2 * slope * xy + slope**2 * xx).sum() / yy.sum())


def _ceiling(main: pd.DataFrame) -> float:
    """Return the skill of the mean y of the same run with the other seeds: what of y is not chance of a seed."""
    y = main[OUTCOME] - main.groupby(["data", "rate", "seed"])[OUTCOME].transform("mean")
    frame = main.assign(y=y)
    same = frame.groupby(["data", "rate", "objective", "kept"])["y"]
    others = (same.transform("sum") - y) / (same.transform("count") - 1)
    return float(1 - ((y - others) ** 2).sum() / (y**2).sum())


TABLES = (contrasts, counts, doses, turns, skills)


def missing() -> list[str]:
    """Return the blocks of which runs are missing, with their numbers."""
    done = pd.read_csv(RESULTS)["block"].value_counts()
    planned = pd.Series([run.block for run in design()]).value_counts()
    return [
        f"{block} {planned[block] - done.get(block, 0)} of {planned[block]}"
        for block in planned.index
        if planned[block] > done.get(block, 0)
    ]


def write(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Write each table of the report as CSV; return them by name."""
    REPORT.mkdir(parents=True, exist_ok=True)
    found = {}
    for table in TABLES:
        found[table.__name__] = table(rows)
        write_text(REPORT / f"{table.__name__}.csv", format_csv(found[table.__name__].round(6)))
    return found


def main() -> None:
    """Write the tables, the picture and the page; while runs are missing a page that says so, without a contrast."""
    from page import write_page, write_state

    rows, unfinished = pd.read_csv(RESULTS), missing()
    if unfinished:
        write_state(REPORT, rows, unfinished)
        return
    write_page(REPORT, rows, write(rows))


if __name__ == "__main__":
    main()
