"""From the command line: evaluate and compare dumps of queries and documents, and of one labelled set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from tests.command_line import lossscope


def rows_of(words: str) -> pd.DataFrame:
    result = lossscope(f"{words} --format json --quiet")
    assert result.exit_code == 0, result.stderr
    return pd.DataFrame(json.loads(result.stdout)["rows"])


def dump(name: str, noise: float, levels: int | None = None) -> None:
    """Write 30 queries with two positives each among 90 documents."""
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(30, 8))
    documents = rng.normal(size=(90, 8))
    pairs = np.stack([np.repeat(np.arange(30), 2), np.arange(60)], 1)
    documents[pairs[:, 1]] += queries[pairs[:, 0]] / noise
    sides = {"queries": queries, "documents": documents}
    if levels:
        sides = {key: np.sign(x).astype(np.float32) / np.sqrt(8) for key, x in sides.items()}
    np.savez(name, positives=pairs, **sides)


@pytest.fixture(autouse=True)
def _dumps(tmp_path: Path) -> None:
    dump("good.npz", 0.5)
    dump("bad.npz", 3.0)
    dump("tied.npz", 1.0, levels=1)
    rng = np.random.default_rng(1)
    np.savez("set.npz", embeddings=rng.normal(size=(40, 8)), labels=np.arange(40) % 8)


def means(words: str) -> dict[tuple[str, str], Any]:
    return {(row["direction"], row["statistic"]): row["mean"] for row in rows_of(words).to_dict("records")}


def test_eval_gives_the_numbers_of_the_library() -> None:
    for name in ("good.npz", "set.npz"):
        expected = evaluate([load(name)])
        pd.testing.assert_frame_equal(rows_of(f"eval {name}")[["statistic", "mean"]], expected[["statistic", "mean"]])
    assert {direction for direction, _ in means("eval good.npz")} == {"q2d", "d2q"}
    assert {direction for direction, _ in means("eval set.npz")} == {"all"}


def test_cut_offs_are_recorded() -> None:
    values = means("eval good.npz --k 3,100")
    assert {name for _, name in values if "@" in name and name[0] in "Rrn"} == {
        "R@3", "R@100", "recall@3", "recall@100", "nDCG@3", "nDCG@100"
    }  # fmt: skip
    assert values["q2d", "recall@100"] == 100.0
    command = json.loads(lossscope("eval good.npz --k 3,100 --format json").stdout)["command"]
    assert command["k"] == [3, 100]
    assert "k" not in json.loads(lossscope("eval good.npz --format json").stdout)["command"]


@pytest.mark.parametrize("format", ["table", "csv", "markdown", "latex"])
def test_every_format_names_the_directions(format: str) -> None:
    result = lossscope(f"eval good.npz --format {format} --quiet")
    assert result.exit_code == 0 and "q2d" in result.stdout and "i2t" not in result.stdout
    assert "image" not in result.stdout and "caption" not in result.stdout.replace(r"\caption", "")


def test_ties_that_touch_a_positive_are_counted_in_a_notice() -> None:
    result = lossscope("eval tied.npz")
    assert "q2d queries of tied.npz have a positive that ties with another candidate: recall@k" in " ".join(
        result.stderr.split()
    )
    assert "ties" not in lossscope("eval good.npz").stderr


def test_run_files_are_named_after_the_sides() -> None:
    result = lossscope("eval good.npz --run-files trec")
    assert "Wrote trec/q2d.run, d2q.run, q2d.qrels and d2q.qrels." in result.stderr
    assert "Wrote set/all.run and all.qrels." in lossscope("eval set.npz --run-files set").stderr


def test_any_two_names_can_be_typed() -> None:
    with np.load("good.npz") as arrays:
        for name in ("a.npz", "b.npz"):
            users, items = arrays["queries"], arrays["documents"]
            np.savez(name, users=users, items=items, positives=arrays["positives"])
    assert {direction for direction, _ in means("eval a.npz --sides user/item")} == {"u2i", "i2u"}
    rows = rows_of("compare a.npz b.npz --sides user/item --metric i2u_MRR@5 --resamples 99")
    assert rows["direction"].tolist() == ["i2u"] and rows["difference"].tolist() == [0.0]


def test_compare_takes_the_directions_of_the_dumps() -> None:
    rows = rows_of("compare good.npz bad.npz --resamples 99")
    assert rows[["direction", "statistic", "baseline", "images"]].to_numpy().tolist() == [
        ["q2d", "nDCG@10", "good.npz", 30]
    ]
    named = rows_of("compare good.npz bad.npz --resamples 99 --metric d2q_MAP@R --metric q2d_recall@20")
    assert named["statistic"].tolist() == ["MAP@R", "recall@20"]
    report = json.loads(lossscope("compare good.npz bad.npz --metric all --resamples 99 --format json").stdout)
    assert "q2d_nDCG@10" in report["command"]["metrics"] and "rsum" not in report["command"]["metrics"]
    assert len(report["rows"]) == len(report["command"]["metrics"])


def test_images_and_captions_are_compared_on_further_measures_that_are_named(dump: Path) -> None:
    Path("other.npz").write_bytes(dump.read_bytes())
    rows = rows_of(f"compare {dump} other.npz --metric i2t_nDCG@10 --metric t2i_R@3 --resamples 99")
    assert rows["statistic"].tolist() == ["nDCG@10", "R@3"]
    assert means(f"eval {dump} --k 1,10")["i2t", "nDCG@10"] == pytest.approx(rows["mean"][0])
