"""Does lossscope compare systems without images over queries, on the metrics that their rows have?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.stats.compare import compare, significance
from lossscope.stats.metric_names import METRICS, RECALLS, extra_cutoffs, is_metric
from lossscope.stats.options import Resampling
from lossscope.stats.paired_tests import images_test
from lossscope.stats.per_image import headline_metrics, metrics_of, parse_metric, per_image
from lossscope.tables import comparison
from tests.each import each
from tests.stats.test_compare import run as run_of_images

QUICK = Resampling(resamples=199)


def run(trained: str, seed: int = 0, worse: float = 0.0, **more: Any) -> pd.DataFrame:
    """Return a run on 30 queries and 20 documents."""
    rng = np.random.default_rng([sum(map(ord, trained)), seed])
    parts = []
    for direction, n in (("q2d", 30), ("d2q", 20)):
        rank = (rng.gamma(1.0, 4.0, n) + worse).astype(int)
        parts.append(pd.DataFrame({
            "direction": direction, "query": [f"{direction[0]}{row}" for row in range(n)], "rank": rank,
            "ap5": 1 / (1 + rank), "relevant": 2, "R@1": 100.0 * (rank < 1), "recall@100": 50.0 * (rank < 50),
            "nDCG@10": 1 / np.log2(rank + 2), "MAP@R": 0.5 * (rank < 2),
        }))  # fmt: skip
    names = {"run": f"{trained}-{seed}", "data": "texts", "encoder": "GRU", "objective_label": trained, "seed": seed}
    return pd.concat(parts, ignore_index=True).assign(**{**names, **more})


def runs(*systems: str, seeds: int = 3, **more: Any) -> pd.DataFrame:
    parts = [run(name, seed, 3.0 * index, **more) for index, name in enumerate(systems) for seed in range(seeds)]
    return pd.concat(parts, ignore_index=True)


def test_metrics_are_those_that_the_rows_have() -> None:
    metrics = ["R@1", "R@5", "R@10", "MRR", "mAP@5", "recall@100", "nDCG@10", "MAP@R"]
    names = metrics_of(runs("a", "b"))
    assert names[0] == "q2d_nDCG@10"
    assert set(names) == {f"{direction}_{name}" for direction in ("q2d", "d2q") for name in metrics}
    assert metrics_of(run_of_images("a")) == METRICS
    more = run_of_images("a").assign(**{"nDCG@10": 0.5})
    assert set(metrics_of(more)) == {*METRICS, "i2t_nDCG@10", "t2i_nDCG@10"}


def test_a_report_tests_few_metrics() -> None:
    assert headline_metrics(run_of_images("a")) == RECALLS
    assert set(headline_metrics(runs("a"))) == {
        f"{direction}_{name}" for direction in ("q2d", "d2q") for name in ("nDCG@10", "R@1", "MAP@R")
    }


@each("name", ["q2d_nDCG@10", "d2q_MAP@R", "q2d_recall@100", "q2d_R@5", "d2q_MRR"])
def test_a_query_is_what_is_resampled(name: str) -> None:
    frame = runs("a", "b")
    row = compare(frame, [name], resampling=QUICK).iloc[0]
    metric = parse_metric(name, metrics_of(frame))
    values = per_image(frame.assign(image=frame["query"]), metric)
    assert row["images"] == len(values) == (30 if name.startswith("q2d") else 20)
    queries = frame[frame["direction"] == metric.direction]
    column = {"MRR": 1 / (queries["rank"] + 1), "R@5": 100.0 * (queries["rank"] < 5)}.get(metric.statistic)
    each = queries[metric.statistic] if column is None else column
    for run_name, of_run in each.groupby(queries["run"]):
        assert values[run_name].mean() == pytest.approx(of_run.mean())
    a, b = (
        values[[f"{system}-{seed}" for seed in range(3)]].to_numpy().mean(1)
        for system in (row["system"], row["baseline"])
    )
    assert row["p_images"] == images_test((a - b)[None], QUICK)[0].p
    assert row["unit"] == ("%" if metric.statistic in ("recall@100", "R@5") else "1")


def test_without_a_metric_the_first_one_decides() -> None:
    assert set(compare(runs("a", "b"), resampling=QUICK)["statistic"]) == {"nDCG@10"}
    of_images = pd.concat([run_of_images("a"), run_of_images("b", shift=4.0)], ignore_index=True)
    assert set(compare(of_images, resampling=QUICK)["statistic"]) == {"rsum"}
    one_set = runs("a", "b").query("direction == 'q2d'").assign(direction="all")
    assert set(compare(one_set, resampling=QUICK)["direction"]) == {"all"}


def test_blocks_of_images_and_of_texts_are_compared_on_their_own_metrics() -> None:
    images = pd.concat([run_of_images("a"), run_of_images("b", shift=4.0)], ignore_index=True)
    texts = runs("a", "b", seeds=1).assign(run=lambda rows: "t" + rows["run"])
    both = pd.concat([images, texts], ignore_index=True)
    rows = compare(both, ["rsum", "q2d_nDCG@10"], resampling=QUICK)
    assert rows[["data", "statistic"]].to_numpy().tolist() == [["scenes", "rsum"], ["texts", "nDCG@10"]]
    alone = [compare(images, resampling=QUICK), compare(texts, resampling=QUICK)]
    numbers = ["difference", "ci_low", "p_images", "images"]
    for index, expected in enumerate(alone):
        assert rows.iloc[index][numbers].tolist() == expected.iloc[0][numbers].tolist()
    with pytest.raises(InputError, match="comparing on q2d_MAP@R takes at least two systems that have it"):
        compare(pd.concat([images, run("a", run="other")], ignore_index=True), ["q2d_MAP@R"], resampling=QUICK)


def test_tests_of_other_metrics_become_marks() -> None:
    marks = significance(compare(runs("a", "b", "c"), ["q2d_nDCG@10"], resampling=QUICK))
    assert set(zip(marks["statistic"], marks["direction"], strict=True)) == {("nDCG@10", "q2d")}


def test_the_table_speaks_of_queries() -> None:
    table = comparison.build(compare(runs("a", "b"), ["q2d_nDCG@10", "q2d_MAP@R"], resampling=QUICK))
    assert "queries 95 % CI" in table.headings and "n = 30 queries" in table.caption
    printed = table.to_text()
    assert "image" not in printed and "caption" not in printed
    assert table.notes[0].startswith(
        "p, queries: paired permutation test that flips the sign of each query's difference; CI: percentile bootstrap "
        "over queries. Values are averaged over seeds first. d: mean"
    )
    built = comparison.build(compare(runs("a", "b", seeds=1), resampling=QUICK))
    assert "Values" not in built.notes[0] and "over queries. d: mean" in built.notes[0]


@each("spoil, message", [
    (lambda f: f.assign(direction="sideways"), "direction of queries must be such as q2d and d2q"),
    (lambda f: f[(f["query"] != "q3") | (f["run"] != "b-2")], "the same queries; those of a-0 and b-2 differ"),
    (lambda f: f[(f["direction"] == "q2d") | (f["run"] != "b-2")], "the same queries; those of a-0 and b-2 differ"),
    (lambda f: f.assign(direction=f["direction"].replace({"q2d": "i2t", "d2q": "t2i"})), "Add image"),
])  # fmt: skip
def test_bad_rows_are_refused(spoil: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(spoil(runs("a", "b")), resampling=QUICK)


def test_unknown_metrics_list_those_there_are() -> None:
    with pytest.raises(InputError, match=r"metric must be one of q2d_nDCG@10, q2d_R@1, .*d2q_MAP@R; got 'rsum'"):
        compare(runs("a", "b"), ["rsum"], resampling=QUICK)


def test_names_of_metrics() -> None:
    assert all(map(is_metric, METRICS))
    assert not any(map(is_metric, ["all", "q2d", "nDCG@10", "q2d_", "q2d_nDCG@010", "both_rsum", "q2d_rsum", "x_MRR"]))
    assert extra_cutoffs(["all"]) is None
    assert extra_cutoffs(["q2d_MAP@R"]) == (1, 5, 10)
    assert extra_cutoffs(["i2t_R@1", "t2i_recall@50", "t2i_R@20"]) == (1, 5, 10, 20, 50)
