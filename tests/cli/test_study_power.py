"""Does `lossscope study power` tell what a number of seeds or images can show?"""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from lossscope.stats.options import Design, PlanOptions, Resampling
from lossscope.stats.pilot import COLUMNS, plan
from lossscope.studies.report import read_runs
from tests.command_line import lossscope, message
from tests.tiny import STUDY_OF_ONE_RUN, run_study


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_study: Path) -> None:
    """Copy tiny.toml, and its finished study of two losses and two seeds to runs/tiny."""
    shutil.copytree(tiny_study, tmp_path / "runs" / "tiny")
    shutil.copy(tiny_study.parent / "tiny.toml", tmp_path)


def test_rows_are_those_of_the_library() -> None:
    words = (
        "study power tiny.toml --difference 5 --seeds 10,3 --images 1000 --baseline Triplet --power 0.9 --alpha 0.01"
    )
    result = lossscope(f"{words} --resamples 199 --format csv")
    assert result.exit_code == 0, result.stderr
    rows = pd.read_csv(io.StringIO(result.stdout), keep_default_na=False, na_values=[""])
    results = read_runs([Path("runs/tiny")])
    options = PlanOptions((3, 10), (1000,), 5.0, Design(0.9, 0.01))
    expected = plan(results.retrieval, None, "Triplet", options, Resampling(199), counts=results.rows)
    assert tuple(rows.columns) == COLUMNS
    numbers = [name for name in expected if pd.api.types.is_numeric_dtype(expected[name])]
    pd.testing.assert_frame_equal(rows[numbers].astype(float), expected[numbers].astype(float), rtol=1e-12)
    assert rows[["system", "baseline", "over", "n"]].to_numpy().tolist() == [
        ["NT-Xent", "Triplet", "seeds", 3], ["NT-Xent", "Triplet", "seeds", 10],
        ["NT-Xent", "Triplet", "images", 10], ["NT-Xent", "Triplet", "images", 1000],
    ]  # fmt: skip


def test_json_is_one_document() -> None:
    document = json.loads(lossscope("study power runs/tiny --format json --resamples 99").stdout)
    assert document["schema"] == "lossscope.power/1"
    assert document["command"]["seeds"] == [3, 5, 10, 20] and document["command"]["resamples"] == 99
    row = document["rows"][0]
    assert (row["over"], row["n"], row["pilot_n"], row["needed"], row["difference"]) == ("seeds", 3, 2, None, None)
    assert row["sd_high"] / row["sd"] == pytest.approx(31.91, rel=1e-3)  # two seeds


def test_tables_are_of_seeds_and_of_images() -> None:
    text = lossscope("study power tiny.toml --resamples 99").stdout
    flat = " ".join(text.split())
    assert "Smallest difference that a number of seeds can show (scenes, VSE++, rsum)" in flat
    assert "Smallest difference that a number of images can show" in flat and "2 seeds make a rough pilot" in flat
    latex = lossscope("study power tiny.toml --resamples 99 --format latex").stdout
    assert latex.count(r"\toprule") >= 2


def test_rows_of_a_file_become_a_picture_and_a_table() -> None:
    Path("p.csv").write_text(lossscope("study power tiny.toml --resamples 99 --format csv").stdout, encoding="utf-8")
    result = lossscope("plot power p.csv")
    assert result.exit_code == 0, result.output
    assert Path("power.png").stat().st_size > 10_000
    assert "smallest difference" in lossscope("table power p.csv").stdout


def test_counts_are_metrics_and_losses_without_them_are_named() -> None:
    result = lossscope("study power tiny.toml --metric i2t_C_0 --resamples 99 --format csv")
    rows = pd.read_csv(io.StringIO(result.stdout))
    assert set(rows["over"]) == {"seeds"} and set(rows["unit"]) == {"queries"} and result.stderr == ""
    result = lossscope("study power tiny.toml --metric i2t_C_neg")
    assert result.exit_code == 1 and "i2t_C_neg must be a number of at least two systems with" in message(result)


def test_runs_that_are_not_done_are_left_out_and_said_so() -> None:
    folder = sorted(Path("runs/tiny/runs").iterdir())[-1]
    (folder / "status.json").write_text('{"status": "failed", "reason": "no memory left"}', encoding="utf-8")
    result = lossscope("study power tiny.toml")
    assert result.exit_code == 1
    assert "at least two seeds in common" in message(result) and "got NT-Xent and Triplet: 0" in message(result)


def test_a_study_of_one_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    run_study(tmp_path / "one", STUDY_OF_ONE_RUN)
    result = lossscope("study power one/study")
    assert result.exit_code == 1 and "at least two systems with the same data and encoder" in message(result)
