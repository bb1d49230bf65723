"""`lossscope analyse utility`: are its rows those of the library, and is what cannot be measured refused?"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.io.csv_tables import read_csv
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.one_step_utility import COLUMNS as OF_BATCHES
from lossscope.training.one_step_utility import one_step_utility
from lossscope.training.stepped_model import open_stepped_model
from lossscope.training.utility_options import UtilityOptions
from lossscope.training.utility_summary import COLUMNS, summarise_utility
from tests.command_line import document, lossscope, message
from tests.each import each


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_rows_are_those_of_the_library_and_a_picture_shows_them(tiny_checkpoint: Path) -> None:
    words = ("--objective", "triplet", "--objective", "ntxent", "--batches", 3, "--step", 0.001, "--interval", 90)
    result = lossscope(
        "analyse", "utility", tiny_checkpoint, *words, "--format", "csv", "--picture", "u.png", "--per-batch", "b.csv"
    )
    assert result.exit_code == 0, result.stderr
    rows = pd.read_csv(io.StringIO(result.stdout))
    options = UtilityOptions(step=0.001, batches=3, interval=0.9)
    batches = one_step_utility(open_stepped_model(tiny_checkpoint), ["triplet", "ntxent"], options)
    expected = summarise_utility(batches, 0.9)
    assert tuple(rows.columns) == COLUMNS and set(rows["held_out"]) == {"val"} and set(rows["batch_size"]) == {32}
    numbers = [name for name in expected if pd.api.types.is_numeric_dtype(expected[name])]
    pd.testing.assert_frame_equal(
        rows[numbers].astype(float), expected[numbers].astype(float), rtol=1e-9, check_dtype=False
    )
    assert tuple(read_csv("b.csv").columns) == OF_BATCHES and len(read_csv("b.csv")) == len(batches)
    assert Path("u.png").stat().st_size > 1000 and "Wrote u.png." in result.stderr
    Path("rows.csv").write_text(result.stdout, encoding="utf-8")
    drawn = lossscope("render", "utility", "rows.csv", "-o", "again.svg")
    assert drawn.exit_code == 0 and Path("again.svg").is_file(), drawn.stderr
    assert "Utility of one step" in lossscope("render", "utility", "rows.csv").stdout


def test_the_trained_loss_is_taken_where_none_is_named(tiny_checkpoint: Path) -> None:
    result = lossscope("analyse", "utility", tiny_checkpoint, "--batches", 1, "--held-out", "test", "--format", "json")
    found = document(result)
    assert found["schema"] == "lossscope.utility/1" and found["command"]["held_out"] == "test"
    assert {row["objective"] for row in found["rows"]} == {"ntxent:tau=0.1"}
    assert all(row["low"] is None and row["baseline"] is None for row in found["rows"])
    assert "no interval: a single batch has no spread" in message(result)


def test_the_table_says_first_that_the_split_is_held_out(tiny_checkpoint: Path) -> None:
    result = lossscope("analyse", "utility", tiny_checkpoint, "--batches", 2, "--objective", "triplet", columns=120)
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "change of split val (20 images, 100 captions), on which no step is taken" in text
    assert "C_neg" in text and "not over items or seeds" in text


@each("words, code, text", [
    (("--held-out", "train"), 1, "no step and no training sees, such as val or test; got train, the training split"),
    (("--split", "val"), 1, "got val, the split of the steps"),
    (("--held-out", "dev"), 1, "split must be one of train, val, test; got 'dev'"),
    (("--objective", "aoq"), 1, "aoq also needs offline information"),
    (("--objective", "triplets"), 2, "did you mean"),
    (("--batch-size", 1000), 1, "fewer items than --batch-size 1000"),
    (("--objective", "triplet", "--sampling", "images"), 1, "--sampling must be pairs or single"),
    (("--step", 0), 2, "--step must be a share above 0 and below 1"),
    (("--eps", -1), 2, "--eps must be a finite number"),
    (("--picture", "u.gif"), 2, "--picture must end in .pdf, .png or .svg"),
    (("--per-batch", "rows.xlsx"), 2, "--per-batch must end in .csv; got 'rows.xlsx'"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(
    words: tuple[object, ...], code: int, text: str, tiny_checkpoint: Path
) -> None:
    result = lossscope("analyse", "utility", tiny_checkpoint, *words)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert text in message(result)


def test_a_bare_learnt_loss_has_the_scale_of_the_checkpoint(tiny_checkpoint: Path, tmp_path: Path) -> None:
    learnt = replace(Checkpoint.load(tiny_checkpoint), objective="infonce:tau=0.05,learn=true,scale_max=100.0")
    learnt.save(tmp_path / "learnt.pt")
    result = lossscope("analyse", "utility", "learnt.pt", "--objective", "infonce", "--batches", 1, "--format", "csv")
    assert result.exit_code == 0, result.stderr
    assert set(pd.read_csv(io.StringIO(result.stdout))["objective"]) == {"infonce:tau=0.05,learn=true,scale_max=100"}
    assert "has the scale that" in message(result)
