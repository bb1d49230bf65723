"""Does the minimum detectable difference depend on the spread and the family, never on the observed difference?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lossscope.io.csv_tables import format_csv
from lossscope.io.frames import read_rows
from lossscope.stats.compare import compare
from lossscope.stats.detectable import detectable
from lossscope.stats.options import Resampling
from lossscope.stats.paired_tests import smallest_p
from lossscope.stats.per_image import parse_metric, per_image
from lossscope.stats.power import power_of
from lossscope.stats.superiority import superiority
from lossscope.tables import comparison
from tests.each import each
from tests.stats.test_compare import only, run, runs

QUICK = Resampling(resamples=9999)
MDD = ("mdd_images", "mdd_seeds", "mdd_seeds_low", "mdd_seeds_high")


def shifted(difference: float) -> pd.DataFrame:
    """Return two comparisons of one family with the same spreads, for any mean difference."""
    row = {"images": 200, "sd_images": 30.0, "n_seeds": 5, "sd_seeds": 4.0, "family": 2, "p_t": 0.3}
    return pd.DataFrame([{**row, "difference": difference}, {**row, "difference": 0.0, "sd_seeds": 8.0}])


def test_each_difference_has_the_power_at_the_level_of_its_family() -> None:
    rows = detectable(shifted(0.0), QUICK)
    assert power_of(rows["mdd_seeds"][0] / 4.0, 5, 0.025) == pytest.approx(0.8)
    assert power_of(rows["mdd_images"][0] / 30.0, 200, 0.025) == pytest.approx(0.8)
    assert rows["mdd_seeds"][1] == pytest.approx(2 * rows["mdd_seeds"][0])
    ends = [math.sqrt(4 / quantile) for quantile in stats.chi2.ppf([0.975, 0.025], 4)]
    assert [rows[name][0] / rows["mdd_seeds"][0] for name in MDD[2:]] == pytest.approx(ends)
    assert rows[["power", "alpha"]].to_numpy().tolist() == [[0.8, 0.05]] * 2


def test_the_observed_difference_is_not_used() -> None:
    """Observed power is a function of p: it would add nothing to p."""
    pd.testing.assert_frame_equal(detectable(shifted(0.0), QUICK), detectable(shifted(99.0), QUICK))


def test_the_level_is_that_of_the_intervals() -> None:
    rows = detectable(shifted(0.0), Resampling(level=0.9))
    assert rows["alpha"].tolist() == [0.1, 0.1]
    assert power_of(rows["mdd_seeds"][0] / 4.0, 5, 0.05) == pytest.approx(0.8)


def test_where_no_resample_can_be_as_small_there_is_no_difference_over_images() -> None:
    assert smallest_p(200, Resampling(99)) == 0.02 and smallest_p(4, Resampling(99)) == 2 / 16
    assert detectable(shifted(0.0), Resampling(99))["mdd_images"].notna().all()  # 0.02 is at most 0.05 / 2
    assert detectable(shifted(0.0).assign(family=3), Resampling(99))["mdd_images"].isna().all()
    assert detectable(shifted(0.0).assign(images=5), QUICK)["mdd_images"].isna().all()  # 2 / 32 is more


def test_without_a_spread_there_is_no_difference() -> None:
    rows = detectable(shifted(0.0).assign(sd_seeds=[0.0, math.nan], n_seeds=[3, 1]), QUICK)
    assert rows[list(MDD[1:])].isna().to_numpy().all()


def test_comparisons_have_them_with_the_share_of_seeds() -> None:
    frame = runs("a", "b", "c", images=60)
    row = only(compare(frame, resampling=QUICK), system="b")
    values = per_image(frame, parse_metric("rsum"))
    a, b = (values[[f"{name}-{seed}" for seed in range(3)]].to_numpy() for name in "ab")
    d = (b - a).mean(1)
    assert row["sd_images"] == pytest.approx(d.std(ddof=1))
    assert power_of(row["mdd_images"] / row["sd_images"], 60, 0.05 / 3) == pytest.approx(0.8)
    assert power_of(row["mdd_seeds"] / row["sd_seeds"], 3, 0.05 / 3) == pytest.approx(0.8)
    better = superiority(b.mean(0), a.mean(0), 0.95)
    assert (row["p_better"], row["p_better_low"], row["p_better_high"]) == (better.p, better.low, better.high)


def test_swapping_systems_leaves_the_differences_and_mirrors_the_share() -> None:
    frame = runs("a", "b", images=60)
    forward, backward = (only(compare(frame, baseline=name, resampling=QUICK)) for name in "ab")
    assert forward[list(MDD)].tolist() == pytest.approx(backward[list(MDD)].tolist(), rel=1e-12)
    assert forward["p_better"] == 1 - backward["p_better"]
    assert forward["p_better_low"] == pytest.approx(1 - backward["p_better_high"])


def test_with_one_seed_only_images_have_one() -> None:
    row = only(compare(runs("a", "b", seeds=1, images=60), resampling=QUICK))
    assert row["mdd_images"] > 0
    assert np.isnan([row[name] for name in (*MDD[1:], "p_better", "p_better_low", "p_better_high")]).all()


def table_of(frame: pd.DataFrame, **resampling: int) -> comparison.Table:
    return comparison.build(compare(frame, resampling=Resampling(**resampling)))


def test_a_table_states_it_where_nothing_was_found() -> None:
    near = pd.concat([runs("a", images=60), runs("d", images=60)], ignore_index=True)  # both from one distribution
    table = table_of(near)
    shown = table.to_frame().iloc[0]
    rows = compare(near).iloc[0]
    assert rows["p_images_holm"] > 0.05 and rows["p_t_holm"] > 0.05
    assert (shown["images MDD"], shown["seeds MDD"]) == (rows["mdd_images"], rows["mdd_seeds"])
    text = " ".join(table.to_text().split())
    assert "MDD, where p is above 0.05: minimum detectable difference" in text
    assert "with probability 0.8 at level 0.05; it follows from the spread of the paired differences" in text
    assert "0.52 to 6.28 times with 3." in text


def test_a_table_of_what_was_found_has_none() -> None:
    far = [run(name, seed, 40.0 * index, images=60) for index, name in enumerate("ab") for seed in range(3)]
    found = table_of(pd.concat(far, ignore_index=True))
    assert np.isnan(found.to_frame()[["images MDD", "seeds MDD"]].to_numpy(float)).all()
    assert "MDD" not in found.to_text() and "P(A > B)" in found.to_text()


def test_a_table_says_where_the_resamples_are_too_few() -> None:
    near = pd.concat([runs(name, images=60) for name in "adg"], ignore_index=True)
    text = " ".join(table_of(near, resamples=99).to_text().split())
    assert "/ 3; it follows from the spread" in text
    assert "Over images it is missing where the resamples are too few for such a small p." in text
    assert "too few" not in " ".join(table_of(near).to_text().split())


def test_a_table_of_one_seed_says_nothing_of_seeds() -> None:
    text = table_of(runs("a", "b", seeds=1, images=60)).to_text()
    assert "P(A > B)" not in text and "times with" not in text


@each("seeds", [1, 3])
def test_a_csv_of_rows_makes_the_same_table(seeds: int, tmp_path: Path) -> None:
    rows = compare(runs("a", "b", seeds=seeds, images=60), resampling=Resampling(199))
    (tmp_path / "rows.csv").write_text(format_csv(rows), encoding="utf-8")
    assert comparison.build(read_rows(tmp_path / "rows.csv")).to_text() == comparison.build(rows).to_text()
