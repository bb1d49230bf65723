"""`--queries` and `--precision-of` from the command line: every format, frames that resume, shards behind URLs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from lossscope.engine import fold
from lossscope.engine.blocks import strips
from tests.command_line import lossscope


@pytest.fixture(name="shards")
def shard_folder(tmp_path: Path) -> Path:
    random, folder = np.random.default_rng(0), tmp_path / "shards"
    folder.mkdir()
    images = random.normal(size=(200, 8)).astype(np.float32)
    for number in (0, 1):
        rows = images[number * 100 : number * 100 + 100]
        np.save(folder / f"images-{number}.npy", rows)
        np.save(folder / f"captions-{number}.npy", rows + random.normal(size=rows.shape).astype(np.float32))
    return folder


def test_json_has_the_interval_and_what_was_sampled(shards: Path) -> None:
    result = lossscope("cocos", str(shards), "--objective", "ntxent", "--queries", "50", "--format", "json", "--quiet")
    assert result.exit_code == 0, result.stderr
    rows = {(row["direction"], row["statistic"]): row for row in json.loads(result.stdout)["rows"]}
    row = rows["t2i", "C_neg"]
    assert row["low"] < row["mean"] < row["high"] and (row["level"], row["n"], row["batch_size"]) == (0.95, 1, 200)
    assert (row["method"], row["sampling"]) == ("sampled queries, t", "pairs, 50 of 200 queries, all candidates")


def test_the_table_says_in_words_what_the_numbers_are_of(shards: Path) -> None:
    result = lossscope("cocos", str(shards), "--objective", "ntxent", "--queries", "50")
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "sampling pairs, 50 of 200 queries, all candidates" in text
    assert "Estimates for all queries of this set" in text and "C_neg" in text
    assert "read shard by shard" in result.stderr


def test_none_of_the_sampled_queries_is_not_none_of_all(shards: Path) -> None:
    text = " ".join(lossscope("cocos", str(shards), "--objective", "triplet", "--queries", "50").stdout.split())
    assert "none of the queries is idle" not in text


def test_a_killed_command_resumes(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("cocos", str(shards), *"--objective ntxent --queries 50 --jobs 1 --format csv --quiet".split())
    monkeypatch.setattr(strips, "STRIP", 30)
    monkeypatch.setattr("lossscope.engine.sampled.checkpoint.EVERY", 0.0)
    whole, computed, fold_band = lossscope(*words), list[int](), fold._Pass._fold_band

    def killed(self: fold._Pass, tasks: Any, band: int, *others: Any) -> Any:
        computed.append(band)
        if len(computed) == 4:
            raise KeyboardInterrupt
        return fold_band(self, tasks, band, *others)

    monkeypatch.setattr(fold._Pass, "_fold_band", killed)
    assert lossscope(*words, "--out", str(tmp_path / "frame")).exit_code == 130
    assert (tmp_path / "frame" / "strips.pt").is_file()
    resumed = lossscope(*words, "--out", str(tmp_path / "frame"))
    assert resumed.exit_code == 0 and computed[:6] == [0, 1, 2, 3, 3, 4]
    assert resumed.stdout == whole.stdout
    assert sorted(path.name for path in (tmp_path / "frame").iterdir()) == ["manifest.json", "part-00000.parquet"]


def test_a_frame_of_other_queries_is_refused(shards: Path, tmp_path: Path) -> None:
    words = ("cocos", str(shards), "--objective", "ntxent", "--out", str(tmp_path / "frame"), "--queries")
    assert lossscope(*words, "50").exit_code == 0
    result = lossscope(*words, "60")
    assert result.exit_code == 1 and "another command" in result.stderr


def test_a_url(shards: Path, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}/shards"
    for file in shards.iterdir():
        with fsspec.open(f"{url}/{file.name}", "wb") as target:
            target.write(file.read_bytes())
    words = ("--objective", "ntxent", "--queries", "50", "--format", "json", "--quiet")
    results = [lossscope("cocos", source, *words) for source in (str(shards), url, f"file://{shards}")]
    assert [result.exit_code for result in results] == [0, 0, 0], results[1].stderr
    means = [[row["mean"] for row in json.loads(result.stdout)["rows"]] for result in results]
    assert means[0] == means[1] == means[2]
    assert json.loads(results[1].stdout)["rows"][0]["source"] == url
    assert lossscope("cocos", url, "--objective", "ntxent").exit_code == 1


def test_cheap_probes_leave_out_what_a_sample_cannot_give(shards: Path) -> None:
    result = lossscope("probe", str(shards), "--objective", "ntxent", "--queries", "50", "--format", "csv")
    assert result.exit_code == 0, result.stderr
    reason = "hubness is left out: it has no number of a single query, which a sample needs"
    assert reason in " ".join(result.stderr.split()) and "meanr" in result.stdout
    assert result.stderr.count("hubness") == 1 and "or --queries" not in result.stderr
