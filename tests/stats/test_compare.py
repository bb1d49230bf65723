"""Do comparisons match exhaustive sign flips, closed testing and scipy, and does lossscope refuse bad input?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lossscope.errors import InputError
from lossscope.stats.compare import COLUMNS, compare, significance
from lossscope.stats.options import Resampling
from lossscope.stats.paired_tests import SeedTest, holm, images_test, seeds_test
from lossscope.stats.per_image import METRICS, parse_metric, per_image
from lossscope.tables import comparison
from tests.each import each

Oracle = Callable[[str], ModuleType]
QUICK = Resampling(resamples=199)
CAPTIONS = (1, 3, 2, 1, 5, 2, 4, 1, 1, 2)  # of each image
TESTS = ("p_images", "p_t", "p_flips")


def run(trained: str, seed: float | None = 0, shift: float = 0.0, images: int = 10, **more: Any) -> pd.DataFrame:
    """Return a run with random ranks of its system and seed, on images with different numbers of captions."""
    return _run(trained, seed, shift, images).assign(**more)


@cache
def _run(trained: str, seed: float | None, shift: float, images: int) -> pd.DataFrame:
    rng = np.random.default_rng([sum(map(ord, trained)), 0 if seed is None else int(seed)])
    rows = []
    for image in range(images):
        hard = rng.gamma(1.0, 4.0)
        for caption in range(-1, CAPTIONS[image % len(CAPTIONS)]):
            direction, query = ("i2t", f"i{image}") if caption < 0 else ("t2i", f"i{image}-{caption}")
            rank = int(hard * rng.random() + shift)
            rows.append((direction, query, f"i{image}", rank, 1 / (1 + rank), 1))
    frame = pd.DataFrame(rows, columns=["direction", "query", "image", "rank", "ap5", "relevant"])
    names = {"run": f"{trained}-{seed}", "data": "scenes", "encoder": "VSE++", "objective_label": trained}
    return frame.assign(**names, seed=seed)


def runs(*systems: str, seeds: int = 3, **more: Any) -> pd.DataFrame:
    """Return runs of all systems and seeds; the first system is the best by far."""
    parts = [run(name, seed, 4.0 * index, **more) for index, name in enumerate(systems) for seed in range(seeds)]
    return pd.concat(parts, ignore_index=True)


def only(frame: pd.DataFrame, **values: str) -> pd.Series[Any]:
    for name, value in values.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


@each("name", METRICS)
def test_means_over_images_are_the_metric_also_with_unequal_numbers_of_captions(name: str, oracle: Oracle) -> None:
    frame, metric = runs("a", "b", seeds=2), parse_metric(name)
    assert metric.name == name
    values = per_image(frame, metric)
    assert len(values) == 10
    for run_name, rows in frame.groupby("run"):
        if name == "rsum":
            expected = oracle("comparing").rsum(list(zip(rows["direction"], rows["rank"], strict=True)))
        else:
            side = rows[rows["direction"] == metric.direction]
            each = {"MRR": 1 / (side["rank"] + 1), "mAP@5": side["ap5"]}.get(metric.statistic)
            k = int(metric.statistic[2:]) if each is None else 0
            expected = float(each.mean() if each is not None else 100 * (side["rank"] < k).mean())
        assert values[run_name].mean() == pytest.approx(expected, rel=1e-12)


@settings(max_examples=60)
@given(st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=9))
def test_p_over_images_is_that_of_all_sign_patterns(oracle: Oracle, differences: list[float]) -> None:
    test = images_test(np.array([differences]), Resampling(resamples=999))[0]
    assert test.p == pytest.approx(oracle("comparing").sign_flip_test(differences))
    assert 0 < test.p <= 1
    assert test.low - 1e-12 <= np.mean(differences) <= test.high + 1e-12


@settings(max_examples=60)
@given(st.lists(st.floats(-9, 9).map(lambda x: round(x, 2)), min_size=2, max_size=7, unique=True))
def test_tests_over_seeds_are_those_of_scipy_and_of_all_sign_patterns(oracle: Oracle, a: list[float]) -> None:
    rng = np.random.default_rng(len(a))
    b = rng.normal(size=len(a)).round(2)
    d = np.array(a) - b
    if np.ptp(d) < 1e-6:
        return
    test = seeds_test(np.array(a), b, QUICK)
    t, effect = oracle("comparing").t_of_pairs(a, b.tolist())
    assert test.p == pytest.approx(2 * stats.t.sf(abs(t), len(a) - 1))
    assert test.d == pytest.approx(effect)
    half = stats.t.ppf(0.975, len(a) - 1) * d.std(ddof=1) / math.sqrt(len(a))
    assert (test.low, test.high) == (pytest.approx(d.mean() - half), pytest.approx(d.mean() + half))
    assert test.flips == pytest.approx(oracle("comparing").sign_flip_test(d.tolist()))


@settings(max_examples=100)
@given(st.lists(st.one_of(st.floats(1e-6, 1.0), st.just(math.nan)), min_size=1, max_size=6))
def test_holm_is_closed_testing_by_bonferroni(oracle: Oracle, p: list[float]) -> None:
    corrected = holm(np.array(p))
    np.testing.assert_allclose(corrected, oracle("comparing").closed_testing(p), rtol=1e-12)
    defined = ~np.isnan(corrected)
    raw = np.array(p)[defined]
    assert (corrected[defined] >= raw - 1e-15).all()
    assert (np.diff(corrected[defined][np.argsort(raw, kind="stable")]) >= -1e-15).all()


def test_one_comparison_by_hand() -> None:
    """Three images; i2t R@1 finds all for a, none for b; all but two of the 8 sign patterns are nearer to 0."""
    frame = pd.concat([run("a", images=3).assign(rank=0), run("b", images=3).assign(rank=50)], ignore_index=True)
    row = only(compare(frame, ["i2t_R@1"]))
    assert (row["system"], row["baseline"], row["mean"], row["mean_baseline"]) == ("b", "a", 0.0, 100.0)
    assert (row["difference"], row["ci_low"], row["ci_high"]) == (-100.0, -100.0, -100.0)
    assert row["p_images"] == row["p_images_holm"] == 0.25
    assert np.isnan(row["d_images"])  # no deviation: infinite


def test_intervals_and_p_are_close_to_the_normal_ones() -> None:
    d = np.random.default_rng(0).normal(0.1, 1, 400)
    test = images_test(d[None], Resampling())[0]
    error = d.std(ddof=1) / 20
    assert test.p == pytest.approx(2 * stats.norm.sf(abs(d.mean()) / error), rel=0.15)
    assert (test.low, test.high) == pytest.approx((d.mean() - 1.96 * error, d.mean() + 1.96 * error), abs=0.01)
    assert test.d == pytest.approx(d.mean() / d.std(ddof=1))


def test_rows_have_both_tests_and_their_settings() -> None:
    rows = compare(runs("a", "b", "c"), ["rsum", "t2i_MRR"], resampling=Resampling(199, 4, 0.9))
    assert tuple(rows.columns) == COLUMNS
    assert list(zip(rows["system"], rows["baseline"], rows["statistic"], strict=True)) == [
        ("b", "a", "rsum"), ("c", "a", "rsum"), ("b", "a", "MRR"), ("c", "a", "MRR"),
    ]  # fmt: skip
    assert rows[["p_images", "p_t", "p_flips", "d_images", "d_seeds", "sd_seeds"]].notna().to_numpy().all()
    settings = rows[["resamples", "seed", "level", "seeds", "n_seeds", "images", "best", "note"]].drop_duplicates()
    assert settings.to_numpy().tolist() == [[199, 4, 0.9, "0, 1, 2", 3, 10, "a", ""]]
    assert (rows["difference"] == rows["mean"] - rows["mean_baseline"]).all()


def test_values_are_averaged_over_seeds_first_and_seeds_over_images() -> None:
    frame = runs("a", "b")
    values = per_image(frame, parse_metric("rsum"))
    a, b = (values[[f"{name}-{seed}" for seed in range(3)]].to_numpy() for name in "ab")
    row = only(compare(frame, resampling=QUICK))
    assert row["p_images"] == images_test((b.mean(1) - a.mean(1))[None], QUICK)[0].p
    assert row["p_t"] == stats.ttest_rel(b.mean(0), a.mean(0)).pvalue
    assert row["sd_seeds"] == pytest.approx((b - a).mean(0).std(ddof=1))
    assert row["p_flips"] == 0.25


def test_swapping_systems_mirrors_every_number() -> None:
    frame = runs("a", "b")
    forward, backward = (only(compare(frame, baseline=name, resampling=QUICK)) for name in "ab")
    assert forward["difference"] == -backward["difference"] != 0
    for ends, other_ends in itertools.product(*[[("ci_low", "ci_high"), ("t_low", "t_high")]] * 2):
        if ends == other_ends:
            assert forward[list(ends)].tolist() == pytest.approx([-x for x in backward[list(ends[::-1])]], rel=1e-12)
    for name in (*TESTS, "sd_seeds"):
        assert forward[name] == pytest.approx(backward[name], rel=1e-12)
    for name in ("d_images", "d_seeds"):
        assert forward[name] == pytest.approx(-backward[name], rel=1e-12)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_systems_the_first_is_subtracted_whichever_is_better(order: str) -> None:
    """`compare A B` printed the worse minus the better, `diff A B` B minus A."""
    frame = runs("a", "b")
    parts = [frame[frame["objective_label"] == name] for name in order]
    row = only(compare(pd.concat(parts, ignore_index=True), resampling=QUICK))
    assert (row["baseline"], row["system"]) == tuple(order)
    assert row["best"] == "a" and (row["difference"] < 0) == (order == "ab")


@each("seed", range(3))
def test_order_of_rows_and_names_of_ids_do_not_matter(seed: int) -> None:
    frame = runs("a", "b", "c")
    expected = compare(frame, ["rsum", "i2t_R@1", "t2i_R@5"], baseline="a", resampling=QUICK)
    new = dict(zip(frame["image"].unique(), np.random.default_rng(seed).permutation(10), strict=True))
    renamed = frame.assign(
        image=frame["image"].map(lambda i: f"x{new[i]}"),
        query=[f"x{new[i]}{q.removeprefix(i)}" for i, q in zip(frame["image"], frame["query"], strict=True)],
    )
    other = compare(
        renamed.sample(frac=1, random_state=seed), ["rsum", "i2t_R@1", "t2i_R@5"], baseline="a", resampling=QUICK
    )
    keys = ["statistic", "direction", "system"]
    pd.testing.assert_frame_equal(
        expected.sort_values(keys, ignore_index=True), other.sort_values(keys, ignore_index=True), rtol=1e-9
    )


def test_a_comparison_does_not_depend_on_other_systems() -> None:
    alone = compare(runs("a", "b"), resampling=QUICK)
    among = compare(runs("a", "b", *"cdefgh"), ["rsum"], resampling=QUICK)  # 28 pairs: more than one call of scipy
    columns = ["difference", "ci_low", "ci_high", "p_images", "d_images", "p_t", "p_flips"]
    pd.testing.assert_frame_equal(alone[columns], among[among["system"] == "b"][columns].reset_index(drop=True))


def test_results_depend_on_the_seed_of_resampling_alone() -> None:
    frame = runs("a", "b", images=40)
    first, again, other = (compare(frame, resampling=Resampling(199, seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first["ci_low"].equals(other["ci_low"])


def test_identical_systems_have_no_difference_and_p_1() -> None:
    frame = pd.concat([runs("a"), runs("a").assign(objective_label="b", run=runs("a")["run"] + "'")], ignore_index=True)
    row = only(compare(frame, resampling=QUICK))
    assert [row[name] for name in (*TESTS, *(f"{name}_holm" for name in TESTS))] == [1.0] * 6
    zeros = ("difference", "ci_low", "ci_high", "t_low", "t_high", "d_images", "d_seeds", "sd_seeds")
    assert [row[name] for name in zeros] == [0.0] * 8
    assert row["note"] == ""


def test_the_same_difference_in_every_seed_has_no_t() -> None:
    test = seeds_test(np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0]), QUICK)
    assert (test.n, test.sd, test.flips) == (3, 0.0, 0.25)
    assert np.isnan([test.p, test.low, test.high, test.d]).all()
    assert seeds_test(np.array([0.3, 0.3]), np.array([0.1 + 0.2, 0.3]), QUICK).p == 1.0


def test_with_one_seed_the_tests_over_seeds_are_undefined() -> None:
    row = only(compare(runs("a", "b", seeds=1), resampling=QUICK))
    names = ("p_t", "p_t_holm", "p_flips", "p_flips_holm", "t_low", "t_high", "sd_seeds", "d_seeds")
    assert np.isnan([row[name] for name in names]).all()
    assert (row["n_seeds"], row["family_seeds"], row["family"]) == (1, 0, 1)
    assert row["note"] == "one seed: seed variance unknown"
    assert 0 < row["p_images"] <= 1


def test_only_shared_seeds_are_used_and_the_others_are_listed() -> None:
    frame = runs("a", "b")
    frame = frame[frame["run"] != "b-1"]
    row = only(compare(frame, resampling=QUICK))
    assert (row["seeds"], row["n_seeds"], row["left_out"]) == ("0, 2", 2, "seed 1 of a")
    kept = only(compare(frame[frame["run"] != "a-1"], resampling=QUICK))
    assert row.drop("left_out").equals(kept.drop("left_out"))


def test_single_runs_without_a_common_seed_are_compared_over_images_only() -> None:
    for seeds in ((0, 1), (None, None), (None, 3)):
        frame = pd.concat([run("a", seeds[0]), run("b", seeds[1], 4.0)], ignore_index=True)
        row = only(compare(frame, resampling=QUICK))
        assert row["note"] == "no common seed, one run each: seed variance unknown"
        assert row["n_seeds"] == 0
        assert row["p_images"] <= 1


def test_a_pair_without_a_common_seed_is_a_row_of_nan() -> None:
    frame = pd.concat([runs("a"), run("b", 0, 4.0), run("c", 1, 8.0), run("c", 2, 8.0)], ignore_index=True)
    row = only(compare(frame, all_pairs=True, resampling=QUICK), system="b", baseline="c")
    assert np.isnan([row[name] for name in ("difference", "ci_low", *TESTS, "p_images_holm")]).all()
    assert row["note"] == "no common seed: not compared"
    assert set(compare(frame, all_pairs=True, resampling=QUICK)["family"]) == {2}


def test_the_family_of_the_best_system_has_every_pair() -> None:
    frame = runs("a", "b", "c", "d")
    best, against = compare(frame, resampling=QUICK), compare(frame, baseline="a", resampling=QUICK)
    pairwise = compare(frame, all_pairs=True, resampling=QUICK)
    assert (len(best), len(against), len(pairwise)) == (3, 3, 6)
    assert [set(table["family"]) for table in (best, against, pairwise)] == [{6}, {3}, {6}]
    for name in TESTS:
        assert (best[name].to_numpy() == against[name].to_numpy()).all()
        assert (best[f"{name}_holm"] >= against[f"{name}_holm"]).all()
        np.testing.assert_allclose(pairwise[f"{name}_holm"], holm(pairwise[name].to_numpy(float)))
        shown = pairwise[pairwise["baseline"] == "a"]
        assert (best[f"{name}_holm"].to_numpy() == shown[f"{name}_holm"].to_numpy()).all()


def test_families_are_of_one_metric_over_all_blocks() -> None:
    other = runs("a", "b", "c").assign(encoder="VSRN")
    frame = pd.concat([runs("a", "b"), other.assign(run="x" + other["run"])], ignore_index=True)
    rows = compare(frame, ["rsum", "i2t_R@1"], baseline="a", resampling=QUICK)
    assert rows.groupby("statistic").size().tolist() == [3, 3]
    assert set(rows["family"]) == {3}
    assert rows["encoder"].tolist() == ["VSE++", "VSRN", "VSRN"] * 2
    for _, family in rows.groupby("statistic"):
        np.testing.assert_allclose(family["p_images_holm"], holm(family["p_images"].to_numpy()))


def test_significance_is_about_the_best_of_each_block() -> None:
    frame = runs("a", "b", "c")
    for rows in (compare(frame, resampling=QUICK), compare(frame, all_pairs=True, resampling=QUICK)):
        marks = significance(rows)
        assert list(marks) == [
            "data",
            "encoder",
            "objective_label",
            "statistic",
            "direction",
            "p_holm",
            "baseline",
            "test",
        ]
        assert marks[["objective_label", "baseline", "test"]].to_numpy().tolist() == [
            ["b", "a", "images"], ["c", "a", "images"], ["b", "a", "seeds"], ["c", "a", "seeds"],
        ]  # fmt: skip
        best = rows[rows["baseline"] == "a"]
        assert marks["p_holm"].tolist() == [*best["p_images_holm"], *best["p_t_holm"]]
    reverse = compare(frame, baseline="b", resampling=QUICK)
    assert significance(reverse)["objective_label"].tolist() == ["b", "b"]


def broken(frame: pd.DataFrame, **values: Any) -> pd.DataFrame:
    changed = frame.copy()
    for name, value in values.items():
        changed[name] = changed[name].astype(object)
        changed.loc[changed.index[-1], name] = value
    return changed.infer_objects()


BAD = [
    (lambda f: f.drop(columns="rank"), "Add rank"),
    (lambda f: f[:0], "must have rows; got none"),
    (lambda f: broken(f, rank=math.nan), "rank of every query must be a number of at least 0; 1 of run b-2 are not"),
    (lambda f: broken(f, ap5=math.nan), "ap5 of every query must be a number"),
    (lambda f: broken(f, rank=-1), "rank of every query"),
    (lambda f: broken(f, direction="both"), "direction of queries must be i2t or t2i; got 'both'"),
    (lambda f: broken(f, data=None), "data must have a value for every query; 1 rows have none"),
    (lambda f: broken(f, seed=7), "a run must have one data, encoder, objective and seed; b-2 has several"),
    (lambda f: f[:-1], "the same queries; those of a-0 and b-2 differ .32 and 31"),
    (lambda f: broken(f, relevant=2), "the same queries; those of a-0 and b-2 differ"),
    (lambda f: broken(f, image="i0"), "the same queries; those of a-0 and b-2 differ"),
    (lambda f: pd.concat([f, f[-1:]]), "queries of a run must be unique; b-2 has 'i9-1' twice"),
    (lambda f: f[f["direction"] == "i2t"], "of both directions; a-0 has none of t2i"),
    (
        lambda f: f[f["objective_label"] == "a"],
        "at least two systems with the same data and encoder; got a .scenes, VSE",
    ),
    (
        lambda f: f.assign(data=f["objective_label"]),
        "at least two systems with the same data and encoder; got a .a, .*; b .b",
    ),
    (lambda f: f.assign(seed=f["seed"].replace(2, 1)), "runs of a must have different seeds; a-1 and a-2 both have 1"),
    (
        lambda f: f[(f["objective_label"] == "a") & (f["seed"] < 2) | (f["seed"] == 2) & (f["objective_label"] == "b")],
        "systems must have a seed in common; got none. b and a: seed 2 of b, seed 0 of a, seed 1 of a",
    ),
]


@each("spoil, message", BAD)
def test_bad_input_is_refused_by_name(spoil: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(spoil(runs("a", "b")), resampling=QUICK)


def test_unknown_names_and_values_are_refused() -> None:
    frame = runs("a", "b")
    with pytest.raises(InputError, match=r"metric must be one of rsum, i2t_R@1, .*; got 'R@1'"):
        compare(frame, ["R@1"])
    with pytest.raises(InputError, match=r'baseline must be one of "a", "b" .*; got "c"\.'):
        compare(frame, baseline="c")
    for values, message in (
        ({"resamples": 98}, "from 99 to 1000000"),
        ({"seed": -1}, "at least 0"),
        ({"level": 1}, "0 and 1"),
    ):
        with pytest.raises(InputError, match=message):
            Resampling(**values)  # type: ignore[arg-type]


def test_the_table_shows_both_tests_side_by_side() -> None:
    rows = compare(runs("a", "b", "c"), ["rsum", "t2i_MRR"], resampling=QUICK)
    table = comparison.build(rows)
    assert table.headings == (
        "metric", "system", "baseline", "difference", "images 95 % CI", "images p", "images d", "images MDD",
        "seeds difference", "seeds p (t)", "seeds p (flips)", "seeds d", "seeds MDD", "seeds P(A > B)",
        "seeds CI of P(A > B)", "seeds n",
    )  # fmt: skip
    frame = table.to_frame()
    assert frame["images p"].tolist() == rows["p_images_holm"].tolist()
    assert frame["seeds p (t)"].tolist() == rows["p_t_holm"].tolist()
    assert frame["seeds difference std"].tolist() == rows["sd_seeds"].tolist()
    for text in ("n = 10 images", "199 resamples, seed 0", "seeds 0, 1, 2", "by Holm over 3 comparisons", "sample"):
        assert text in table.caption
    assert table.rows[0][4].text == f"[{rows['ci_low'][0]:.2f}, {rows['ci_high'][0]:.2f}]".replace("-", "−")


@each("format", ["text", "markdown", "latex", "html"])
def test_one_seed_is_told_of_no_test_and_no_deviation_over_seeds(format: str) -> None:
    table = comparison.build(compare(runs("a", "b", seeds=1), resampling=QUICK))
    printed = " ".join(getattr(table, f"to_{format}")().split())
    assert "one run each, seed 0;" in printed and "over n = 10 images" in printed
    for words in ("±", "pm", "standard deviation over", "t-test", "flips)", "over seeds", "averaged"):
        assert words not in printed


def test_the_deviation_of_two_seeds_is_said_to_be_their_distance() -> None:
    rows = compare(runs("a", "b", seeds=2), resampling=QUICK)
    assert comparison.build(rows).caption.endswith(
        "mean ± sample standard deviation over seeds (with two seeds, 0.71 times their distance)."
    )
    three = comparison.build(compare(runs("a", "b"), resampling=QUICK))
    assert three.caption.endswith("mean ± sample standard deviation over seeds.")
    assert "p (t): paired t-test over seeds" in three.notes[0] and "over images or over seeds" in three.notes[0]


def test_the_table_has_a_note_on_missing_tests_and_prints_no_p_as_zero() -> None:
    rows = compare(runs("a", "b", seeds=1), resampling=QUICK).assign(p_images_holm=3e-6)
    table = comparison.build(rows)
    assert table.notes[-1] == "b against a: one seed: seed variance unknown."
    assert "1 comparison of a metric;" in table.caption
    line = dict(zip(table.headings, table.rows[0], strict=True))
    assert line["images p"].plain() == "0.000003"
    assert line["seeds difference"].missing
    assert line["seeds p (t)"].missing
    with pytest.raises(InputError, match="Add p_t_holm"):
        comparison.build(rows.drop(columns="p_t_holm"))
    with pytest.raises(InputError, match="must have rows; got none"):
        comparison.build(rows[:0])


def null(rng: np.random.Generator, images: int, captions: int) -> np.ndarray[Any, Any]:
    """Return t2i hits (2, images, captions) of two exchangeable systems; captions of an image are correlated."""
    chance = rng.beta(0.4, 0.4, (2, images, 1))
    return (rng.random((2, images, captions)) < chance).astype(float) * 100


def test_tests_keep_their_level_with_images_as_units_and_not_with_captions() -> None:
    rng, trials = np.random.default_rng(5), 600
    hits = [null(rng, 40, 5) for _ in range(trials)]
    images = np.array([(a - b).sum(1) for a, b in hits])
    captions = np.array([(a - b).ravel() for a, b in hits])
    tests = images_test(images, Resampling(resamples=399))
    rejected = sum(test.p <= 0.05 for test in tests)
    low, high = stats.binom.interval(0.999, trials, 0.05)
    assert low <= rejected <= high
    covered = sum(test.low <= 0 <= test.high for test in tests)
    assert stats.binom.ppf(0.0005, trials, 0.93) <= covered <= stats.binom.ppf(0.9995, trials, 0.96)
    naive = sum(test.p <= 0.05 for test in images_test(captions, Resampling(resamples=399)))
    assert naive > 2 * high


def test_p_over_seeds_is_calibrated_too() -> None:
    rng, trials = np.random.default_rng(6), 500
    tests = [seeds_test(*rng.normal(300, 4, (2, 6)), QUICK) for _ in range(trials)]
    for name, level in (("p", 0.05), ("flips", 2 / 64)):
        rejected = sum(getattr(test, name) <= level + 1e-12 for test in tests)
        assert stats.binom.ppf(0.0005, trials, level) <= rejected <= stats.binom.ppf(0.9995, trials, level)


def test_the_best_of_several_equal_systems_is_seldom_called_better() -> None:
    """With each pair in the family; with only the shown pairs, more than 5 % of the calls would reject."""
    rng, trials = np.random.default_rng(7), 300
    rejected = naive = 0
    for _ in range(trials):
        values = rng.normal(size=(6, 30))
        pairs = list(itertools.combinations(range(6), 2))
        p = np.array([test.p for test in images_test(np.array([values[a] - values[b] for a, b in pairs]), QUICK)])
        best = [i for i, pair in enumerate(pairs) if int(values.mean(1).argmax()) in pair]
        rejected += bool((holm(p)[best] <= 0.05).any())
        naive += bool((holm(p[best]) <= 0.05).any())
    assert rejected <= stats.binom.ppf(0.9995, trials, 0.05)
    assert naive > stats.binom.ppf(0.9995, trials, 0.05)


def test_an_empty_seed_test_is_nan() -> None:
    assert all(math.isnan(x) for x in (SeedTest().p, SeedTest().flips, SeedTest().d, SeedTest().sd))
