"""Does `lossscope compare` compare runs and dumps, write run files, and refuse what cannot be compared?"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.retrieval.per_query import per_query
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.stats.compare import compare
from lossscope.stats.options import Resampling
from lossscope.stats.per_image import METRICS
from tests.command_line import lossscope


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_run: Path) -> None:
    """Make four models, two objectives with two seeds, from the epochs of one run and noise."""
    base = Checkpoint.load(tiny_run / "best.pt")
    for objective in ("ntxent:tau=0.1", "triplet:margin=0.2"):
        for seed in (0, 1):
            torch.manual_seed(seed)
            noise = 1.0 if objective.startswith("triplet") else 0.1
            weights = {
                k: v * (1 + noise * torch.rand_like(v)) if v.is_floating_point() else v for k, v in base.weights.items()
            }
            values = {"objective": objective, "training": {**base.training, "objective": objective, "seed": seed}}
            name = f"{objective.partition(':')[0]}-{seed}.pt"
            Checkpoint(**{**vars(base), "weights": weights, **values}).save(tmp_path / name)


ALL = "compare ntxent-0.pt ntxent-1.pt triplet-0.pt triplet-1.pt --resamples 199"


def test_rows_are_those_of_the_library() -> None:
    result = lossscope(f"{ALL} --format csv --metric rsum --metric i2t_MRR")
    assert result.exit_code == 0, result.stderr
    rows = pd.read_csv(io.StringIO(result.stdout), keep_default_na=False, na_values=[""])
    parts = []
    for name in ("ntxent", "triplet"):
        for seed in (0, 1):
            who = {"run": f"{name}{seed}", "data": "d", "encoder": "e", "objective_label": name, "seed": seed}
            parts.append(per_query(load(f"{name}-{seed}.pt", split="test")).assign(**who))
    expected = compare(pd.concat(parts), ["rsum", "i2t_MRR"], resampling=Resampling(199))
    numbers = expected.select_dtypes("number").columns
    pd.testing.assert_frame_equal(rows[numbers], expected[numbers], rtol=1e-12)
    assert rows["system"].tolist() == expected["system"].tolist()
    assert rows["seeds"].tolist() == ["0, 1"] * 2


def test_json_is_one_document_and_a_table_goes_to_a_file() -> None:
    report = json.loads(lossscope(f"{ALL} --format json").stdout)
    assert report["schema"] == "lossscope.comparison/3"
    assert report["command"]["metrics"] == ["rsum"]
    assert report["rows"][0]["n_seeds"] == 2
    result = lossscope(f"{ALL} --format latex --metric all --out tables/all.tex")
    assert (result.exit_code, result.stdout) == (0, "")
    text = Path("tables/all.tex").read_text()
    assert r"\toprule" in text
    rows = text.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    assert rows.count(r" \\") == len(METRICS) and "system triplet; baseline ntxent" in text


def test_a_baseline_is_a_system_or_one_of_its_runs() -> None:
    for name in ("triplet", "triplet-1.pt"):
        rows = json.loads(lossscope(f"{ALL} --baseline {name} --format json").stdout)["rows"]
        assert [(row["system"], row["baseline"]) for row in rows] == [("ntxent", "triplet")]


def test_a_missing_seed_is_named() -> None:
    result = lossscope("compare ntxent-0.pt ntxent-1.pt triplet-1.pt --resamples 99")
    assert result.exit_code == 0
    assert "Note: left out, because the other system has no such seed: seed 0 of ntxent." in result.stderr
    assert "one seed: seed variance unknown" in result.stdout
    assert lossscope("compare ntxent-0.pt ntxent-1.pt triplet-1.pt --resamples 99 --quiet").stderr == ""


def dump(name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 8))
    np.savez(name, images=x, captions=x + rng.normal(size=(n, 8)))


def test_dumps_are_systems_of_their_own_names() -> None:
    dump("saf.npz", 30, 0)
    dump("sgr.npz", 30, 1)
    result = lossscope("compare saf.npz sgr.npz --all-pairs --resamples 99 --format json --quiet")
    row = json.loads(result.stdout)["rows"][0]
    assert {row["system"], row["baseline"]} == {"saf.npz", "sgr.npz"}
    assert row["p_t"] is None
    assert row["note"] == "no common seed, one run each: seed variance unknown"
    for format in ("table", "latex"):
        table = lossscope(f"compare saf.npz sgr.npz --resamples 99 --format {format} --quiet").stdout
        words = " ".join(table.split()).replace("$-$", "−")
        assert "Differences, system − baseline: sgr.npz, saf.npz, rsum;" in words
        assert "one run each, of unknown seed;" in words
        assert "unknown, unknown" not in words


def test_eval_writes_run_files_beside_its_numbers() -> None:
    plain = lossscope("eval ntxent-0.pt --format json --quiet").stdout
    result = lossscope("eval ntxent-0.pt --run-files trec --run-top 7 --format json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == json.loads(plain)["rows"]
    assert "Wrote trec/i2t.run, t2i.run, i2t.qrels and t2i.qrels." in result.stderr
    assert len(Path("trec/i2t.run").read_text().splitlines()) == 20 * 7
    assert len(Path("trec/t2i.qrels").read_text().splitlines()) == 100
    assert Path("trec/i2t.run").read_text().splitlines()[0].endswith(" ntxent-0")
    assert lossscope("eval ntxent-0.pt triplet-0.pt --run-files both -q").exit_code == 0
    assert sorted(p.name for p in Path("both").iterdir()) == ["00-ntxent-0", "01-triplet-0"]
