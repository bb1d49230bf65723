"""Which loss retrieves best, by how much, and could it be chance?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from lossscope.core.sides import plural
from lossscope.io.scores import Score, score_comparisons, score_rows

from ..chapters import comparison, retrieval
from ..chapters.base import ReportData, unlabelled_pair
from ..sections import Finding
from .base import join, p_text, setting
from .warmup_alone import warmup_alone

LEVEL = 0.05  # of a difference
_SYSTEM = ["data", "encoder", "objective_label"]
_EACH = 3  # settings that have a sentence of their own; more are counted
_AMBIGUOUS = 1.0  # per cent of other pairs that match, from which on it is stated


def build(data: ReportData) -> Iterator[Finding]:
    """Yield a sentence on each pair of data and model, or on all of them where they are many."""
    means = scores(data)
    defined = means.dropna(subset=["mean"])
    settings = [systems for _, systems in defined.groupby(["data", "encoder"], sort=False, observed=True)]
    compared = [systems for systems in settings if len(systems) > 1]
    if len(compared) > _EACH:
        yield Finding(_tally(compared, data), comparison.TITLE)
        return
    for systems in settings:
        chapter = comparison.TITLE if len(systems) > 1 and len(data.comparisons) else retrieval.TITLE
        yield Finding(_contest(systems, defined, data) if len(systems) > 1 else _alone(systems, defined, data), chapter)


def scores(data: ReportData) -> pd.DataFrame:
    """Return data, encoder, objective_label, mean, runs, name: mean score over the seeds of each system.

    `name` is what sentences call a system: its label, and that it was trained in its warm-up alone.
    """
    scored = score_rows(data.results.rows)
    grouped = scored.groupby(_SYSTEM, sort=False, observed=True)["mean"]
    means = grouped.agg(mean="mean", runs="count").reset_index()
    other = warmup_alone(data.results.epochs)
    names = [
        f"{key[2]} (in its warm-up alone, trained with {other[key]})" if key in other else key[2]
        for key in means[_SYSTEM].itertuples(index=False, name=None)
    ]
    return means.assign(name=names)


def _contest(systems: pd.DataFrame, all_systems: pd.DataFrame, data: ReportData) -> str:
    """Return which system of a setting is best, and whether the others differ from it."""
    systems = systems.sort_values("mean", ascending=False, kind="stable")
    first, score = systems.iloc[0], data.score
    tests = _against(data.comparisons, systems)
    equal = 0.5 * 10**-score.digits  # differences below it print as 0
    as_good = [] if tests.empty else list(tests.loc[tests["lead"].abs() < equal, "name"])
    where = setting(first["data"], first["encoder"], all_systems)
    retrieve = "retrieves" if not as_good else "retrieve"
    text = f"{join([first['name'], *as_good])} {retrieve} best on {where}: {score.text(first['mean'])}."
    if tests.empty:
        return f"{text} {systems['name'].iloc[1]} follows with {score.number(systems['mean'].iloc[1])}; not tested."
    others = tests[~tests["name"].isin(as_good)]
    near = others[~(others["p_images_holm"] <= LEVEL)]
    behind = others[others["p_images_holm"] <= LEVEL]
    parts = [
        text,
        f"{_not_distinguishable(near, data, it='them' if as_good else 'it')}." if len(near) else "",
        f"{_behind(behind, data)}." if len(behind) else "",
    ]
    return " ".join(part for part in parts if part)


def _not_distinguishable(rows: pd.DataFrame, data: ReportData, it: str) -> str:
    """Return `NT-Xent is not distinguishable from it: behind by 0.8 points (...)`."""
    each = [f"{row['name'] + ' ' if len(rows) > 1 else ''}{_place(row, data)}" for row in rows.to_dict("records")]
    return f"{join(rows['name'])} {_are(rows)} not distinguishable from {it}: {'; '.join(each)}"


def _behind(rows: pd.DataFrame, data: ReportData) -> str:
    """Return `SmoothAP and Triplet SH are behind by 202.8 points (...) and 267.8`; the interval is of the nearest."""
    nearest, *further = rows.to_dict("records")
    if nearest["lead"] < 0:
        return "; ".join(f"{row['name']} is {_place(row, data)}" for row in (nearest, *further))
    leads = join([_lead(nearest, data), *(data.score.number(row["lead"]) for row in further)])
    return f"{join(rows['name'])} {_are(rows)} behind by {leads}"


def _place(row: Mapping[Any, Any], data: ReportData) -> str:
    """Return `behind by 0.8 points (...)`; ahead, where seeds that only one of the two has make the mean."""
    return f"{'ahead' if row['lead'] < 0 else 'behind'} by {_lead(row, data)}"


def _are(rows: pd.DataFrame) -> str:
    return "is" if len(rows) == 1 else "are"


def _against(comparisons: pd.DataFrame, ranked: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of the score against the best of a setting, the nearest first, as lead of the best.

    Args:
        comparisons: of the report.
        ranked: systems of the setting, the best first.
    """
    if comparisons.empty:
        return comparisons
    first = ranked.iloc[0]
    same = (comparisons["data"] == first["data"]) & (comparisons["encoder"] == first["encoder"])
    rows = score_comparisons(comparisons[same])
    rows = rows[(rows["baseline"] == first["objective_label"]) & rows["difference"].notna()]
    systems = ranked.set_index("objective_label")
    names = rows["system"].map(systems["name"]).fillna(rows["system"])
    runs = rows["system"].map(systems["runs"]).fillna(1).clip(lower=first["runs"])
    lead = {"name": names, "lead": -rows["difference"], "low": -rows["ci_high"], "high": -rows["ci_low"], "runs": runs}
    tests: pd.DataFrame = rows.assign(**lead).sort_values("lead")
    return tests


def _lead(row: Mapping[Any, Any], data: ReportData) -> str:
    """Return `0.8 points (95 % interval −22.2 to 25.2 over 100 test images, p = 0.96)`."""
    low, high = (row["low"], row["high"]) if row["lead"] >= 0 else (-row["high"], -row["low"])
    score, tested = data.score, f"{row['images']:.0f} test {plural(data.sides.first)}"
    interval = f"{100 * row['level']:g} % interval {_signed(low, score)} to {_signed(high, score)}"
    seeds = f"; over {row['n_seeds']:.0f} seeds ± {score.number(row['sd_seeds'])}" if row["sd_seeds"] > 0 else ""
    if row["n_seeds"] < row["runs"]:
        shared = "the one seed" if row["n_seeds"] == 1 else f"the {row['n_seeds']:.0f} seeds"
        seeds = f"; over {shared} that both have" + (
            f" ± {score.number(row['sd_seeds'])}" if row["sd_seeds"] > 0 else ""
        )
    return f"{score.number(abs(row['lead']))}{score.unit} ({interval} over {tested}, {p_text(row)}{seeds})"


def _signed(value: float, score: Score) -> str:
    """Return a number with a minus sign; never `−0.0`."""
    return score.number(round(value, score.digits) + 0.0).replace("-", "−")


def _alone(systems: pd.DataFrame, all_systems: pd.DataFrame, data: ReportData) -> str:
    """Return what the only system of a setting reaches."""
    row = systems.iloc[0]
    where, rows = setting(row["data"], row["encoder"], all_systems), data.results.rows
    mine = (rows["data"] == row["data"]) & (rows["encoder"] == row["encoder"]) & (rows["probe"] == "recall")
    top = rows[mine & (rows["statistic"] == "R@1")].groupby("direction", observed=True)["mean"].mean()
    recall = ""
    if set(data.sides.labels) <= set(top.dropna().index):
        each = (f"{top[label]:.1f} % {data.sides.words(label)}" for label in data.sides.labels)
        recall = f" (R@1 {', '.join(each)})"
    text = f"{row['name']} on {where} reaches {data.score.text(row['mean'])}{recall}"
    return f"{text}; no other loss has numbers there.{_ambiguity(row['data'], data)}"


def _ambiguity(name: str, data: ReportData) -> str:
    """Return how many negatives match after all, where the data set knows it and they are not rare."""
    rows = data.results.rows
    share = rows[(rows["statistic"] == "true_negatives") & (rows["data"] == name)]["mean"].dropna()
    if share.empty or share.iloc[0] < _AMBIGUOUS:
        return ""
    pair = unlabelled_pair(data.sides, "an image and another image's caption")
    return f" On these data, {share.iloc[0]:.3g} % of the pairs of {pair} match."


def _tally(settings: list[pd.DataFrame], data: ReportData) -> str:
    """Return how often each loss is best, and how often beyond chance."""
    ordered = [systems.sort_values("mean", ascending=False, kind="stable") for systems in settings]
    wins = pd.Series([systems["name"].iloc[0] for systems in ordered]).value_counts()
    clear = 0
    for systems in ordered:
        tests = _against(data.comparisons, systems)
        clear += bool(len(tests) == len(tests[tests["p_images_holm"] <= LEVEL]) > 0)
    each = join(f"{name} in {count}" for name, count in wins.items())
    return (
        f"Of {len(settings)} settings (data and model), the best {data.score.name} is that of {each}. In "
        f"{clear or 'none'} of them the best loss is distinguishable from every other (paired permutation test over "
        f"test {plural(data.sides.first)}, Holm-corrected "
        f"p below {LEVEL:g})."
    )
