"""Do a plan's rows follow the pilot's spread, over seeds and over images, and is too small a pilot refused?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.stats.options import Design, PlanOptions, Resampling
from lossscope.stats.per_image import parse_metric, per_image
from lossscope.stats.pilot import COLUMNS, plan
from lossscope.stats.power import power_of
from tests.each import each
from tests.stats.test_compare import run, runs
from tests.stats.test_other_sides import runs as runs_of_texts

QUICK = Resampling(resamples=199)


def planned(frame: pd.DataFrame, *metrics: str, baseline: str | None = None, **options: Any) -> pd.DataFrame:
    return plan(frame, metrics or None, baseline, PlanOptions(**options), QUICK)


def counts_of(frame: pd.DataFrame, **of_system: str) -> pd.DataFrame:
    """Return summary rows of a count for each run; a system may have another statistic than C_neg."""
    rows = []
    for index, (label, name) in enumerate(frame[["objective_label", "run"]].drop_duplicates().itertuples(index=False)):
        for convention, value in (("corrected", 3.0 + index % 5), ("released", 99.0)):
            statistic = of_system.get(str(label), "C_neg")
            rows.append((name, "i2t", "cocos", statistic, value, convention, 0.01, "samples"))
    columns = ["run", "direction", "probe", "statistic", "mean", "convention", "eps", "unit"]
    return pd.DataFrame(rows, columns=columns)


def test_rows_are_of_every_pair_and_number() -> None:
    rows = planned(runs("a", "b", "c"), "rsum", "t2i_MRR", seeds=(3, 9), images=(1000,))
    assert tuple(rows.columns) == COLUMNS
    assert len(rows) == 2 * 3 * (2 + 2)
    first = rows[(rows["statistic"] == "rsum") & (rows["system"] == "a") & (rows["baseline"] == "b")]
    assert first[["over", "pilot_n", "n"]].to_numpy().tolist() == [
        ["seeds", 3, 3], ["seeds", 3, 9], ["images", 10, 10], ["images", 10, 1000],
    ]  # fmt: skip
    assert set(rows["pilot_seeds"]) == {"0, 1, 2"} and set(rows["note"]) == {""}


def test_the_spreads_are_those_of_the_paired_differences() -> None:
    frame = runs("a", "b", images=40)
    values = per_image(frame, parse_metric("rsum"))
    d = values[[f"a-{seed}" for seed in range(3)]].to_numpy() - values[[f"b-{seed}" for seed in range(3)]].to_numpy()
    seeds, images = (group.iloc[0] for _, group in planned(frame, seeds=(5,)).groupby("over", sort=False))
    assert (seeds["sd"], images["sd"]) == pytest.approx((d.mean(0).std(ddof=1), d.mean(1).std(ddof=1)))
    assert seeds["pilot_difference"] == images["pilot_difference"] == pytest.approx(d.mean())
    for row in (seeds, images):
        for end in ("", "_low", "_high"):
            assert power_of(row[f"mdd{end}"] / row[f"sd{end}"], row["n"], 0.05) == pytest.approx(0.8)
        assert row["sd_low"] < row["sd"] < row["sd_high"]
    assert (seeds["method"], images["method"]) == ("chi-square, seeds", "percentile bootstrap, images")
    assert seeds["p_better"] == 1.0 and np.isnan(images["p_better"])


def test_the_pairs_that_a_difference_needs_are_the_fewest_that_show_it() -> None:
    rows = planned(runs("a", "b", images=40), difference=7.0, design=Design(0.9, 0.01))
    for row in rows.drop_duplicates("over").to_dict("records"):
        for end in ("", "_low", "_high"):
            n, effect = row[f"needed{end}"], 7.0 / row[f"sd{end}"]
            assert power_of(effect, n, 0.01) >= 0.9 - 1e-8
            assert n == 2 or power_of(effect, n - 1, 0.01) < 0.9
        assert row["needed_low"] <= row["needed"] <= row["needed_high"]
    assert planned(runs("a", "b"))["needed"].isna().all()


def test_the_pilots_own_difference_is_not_used() -> None:
    """The spread stays where a system is better by the same number in each query."""
    frame = runs_of_texts("a", "b")
    better = frame.assign(**{"nDCG@10": frame["nDCG@10"] + 5.0 * (frame["objective_label"] == "a")})
    needs, better_needs = (planned(rows, difference=0.1) for rows in (frame, better))
    assert (better_needs["pilot_difference"] - needs["pilot_difference"]).to_numpy() == pytest.approx(5.0)
    spread = ["sd", "sd_low", "sd_high", "mdd", "mdd_low", "mdd_high"]
    np.testing.assert_allclose(needs[spread].to_numpy(float), better_needs[spread].to_numpy(float), rtol=1e-9)
    assert needs["needed"].tolist() == better_needs["needed"].tolist()


def test_of_other_sides_the_unit_is_the_query() -> None:
    rows = planned(runs_of_texts("a", "b"))
    assert set(rows["statistic"]) == {"nDCG@10"} and list(rows["over"].unique()) == ["seeds", "queries"]
    assert rows.loc[rows["over"] == "queries", "n"].tolist() == [30]


def test_the_baseline_comes_second_and_alone() -> None:
    rows = planned(runs("a", "b", "c"), baseline="b")
    assert set(zip(rows["system"], rows["baseline"], strict=True)) == {("a", "b"), ("c", "b")}
    with pytest.raises(InputError, match='baseline must be one of "a", "b", "c"'):
        planned(runs("a", "b", "c"), baseline="x")


def test_a_system_alone_on_its_data_needs_no_baseline() -> None:
    both = runs("a", "b")
    pd.testing.assert_frame_equal(
        planned(pd.concat([both, runs("c", encoder="other")], ignore_index=True), baseline="b"),
        planned(both, baseline="b"),
    )


def test_order_of_rows_does_not_matter() -> None:
    frame = runs("a", "b", images=30)
    keys = ["system", "over", "n"]
    needs, shuffled_needs = (planned(rows, baseline="a").sort_values(keys, ignore_index=True) for rows in (
        frame, frame.sample(frac=1, random_state=0),
    ))  # fmt: skip
    pd.testing.assert_frame_equal(needs, shuffled_needs)


def test_two_seeds_are_enough_for_numbers_that_are_hardly_known() -> None:
    row = planned(runs("a", "b", seeds=2)).iloc[0]
    assert row["pilot_n"] == 2 and row["sd_high"] / row["sd_low"] == pytest.approx(71.5, rel=0.01)


def test_one_seed_is_an_error_and_of_one_pair_a_note() -> None:
    with pytest.raises(InputError, match=r"at least two seeds in common.*got a and b: 0. Add seeds to the study"):
        planned(runs("a", "b", seeds=1))
    mixed = pd.concat([runs("a", "b"), run("c", 0, 8.0)], ignore_index=True)
    rows = planned(mixed, seeds=(3,))
    poor = rows[(rows["baseline"] == "c") & (rows["over"] == "seeds")]
    assert set(poor["note"]) == {"one seed: seed variance unknown"}
    assert set(poor["left_out"]) == {"seed 1 of a, seed 2 of a", "seed 1 of b, seed 2 of b"}
    assert poor[["mdd", "p_better", "sd"]].isna().to_numpy().all()
    assert rows.loc[rows["over"] == "images", "mdd"].notna().all()


def test_pairs_without_a_common_seed_have_no_numbers() -> None:
    apart = pd.concat([runs("a", "b"), run("c", 7, 8.0), run("c", 8, 8.0)], ignore_index=True)
    rows = planned(apart, seeds=(3,), images=(50,))
    poor = rows[rows["baseline"] == "c"]
    assert set(poor["note"]) == {"no common seed: not compared"} and len(poor) == 2 * 3
    assert poor[["mdd", "pilot_difference", "p_better"]].isna().to_numpy().all() and set(poor["pilot_n"]) == {0}


def test_counts_are_metrics_over_seeds() -> None:
    frame = runs("a", "b", "c")
    counts = counts_of(frame, c="C_q")
    rows = plan(frame, ["i2t_C_neg"], None, PlanOptions(seeds=(5,)), QUICK, counts=counts)
    assert rows[["system", "baseline", "over", "unit"]].to_numpy().tolist() == [["a", "b", "seeds", "samples"]]
    means = counts[counts["convention"] == "corrected"].set_index("run")["mean"]
    d = [means[f"a-{seed}"] - means[f"b-{seed}"] for seed in range(3)]
    assert rows["sd"][0] == pytest.approx(np.std(d, ddof=1)) and rows["pilot_difference"][0] == pytest.approx(
        np.mean(d)
    )
    with pytest.raises(InputError, match="i2t_C_q must be a number of at least two systems with the same"):
        plan(frame, ["i2t_C_q"], counts=counts)
    twice = pd.concat([counts, counts.assign(eps=0.1)], ignore_index=True)
    with pytest.raises(InputError, match=r"must be one number; a-0 has those of eps 0.01, 0.1"):
        plan(frame, ["i2t_C_neg"], counts=twice)


def test_progress_counts_pairs() -> None:
    seen: list[tuple[int, int]] = []
    plan(runs("a", "b", "c"), None, None, None, QUICK, lambda label, done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@each("options, message", [
    ({"seeds": (1, 3)}, "--seeds must be at least 2; got 1, 3"),
    ({"images": (0,)}, "--images must be at least 2; got 0"),
    ({"difference": 0.0}, "--difference must be above 0; got 0"),
    ({"difference": float("nan")}, "--difference must be above 0; got nan"),
])  # fmt: skip
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PlanOptions(**options)


def test_an_unknown_metric_names_those_there_are() -> None:
    with pytest.raises(InputError, match=r"metric must be one of rsum, .* got 'x'"):
        planned(runs("a", "b"), "x")
