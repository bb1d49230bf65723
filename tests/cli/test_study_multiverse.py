"""`lossscope study multiverse`: are its rows those of the library, and is what it cannot ask refused?"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pandas as pd
import pytest

from lossscope.io.frames import read_rows
from lossscope.stats.multiverse import COLUMNS, claim_shares
from lossscope.studies.multiverse import Multiverse
from lossscope.studies.multiverse_options import MultiverseOptions
from lossscope.studies.study import Study
from tests.command_line import document, lossscope, message
from tests.each import each

WORDS = (
    "--conventions",
    "corrected",
    "--units",
    "paper,cosine",
    "--eps",
    "0.01,0.1",
    "--batch-factors",
    "1",
    "--epochs",
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_study: Path) -> None:
    """Copy tiny.toml, and its finished study of two losses and two seeds to runs/tiny."""
    shutil.copytree(tiny_study, tmp_path / "runs" / "tiny")
    shutil.copy(tiny_study.parent / "tiny.toml", tmp_path)


def test_rows_are_those_of_the_library_and_the_same_command_computes_nothing_again() -> None:
    first = lossscope("study", "multiverse", "tiny.toml", *WORDS, "best", "--dry-run")
    assert first.exit_code == 0 and first.stdout == ""
    assert "3 claims. To compute: 4 sweeps and 4 evaluations; 0 of 8 are kept." in message(first)
    result = lossscope("study", "multiverse", "tiny.toml", *WORDS, "best", "--format", "csv", "-o", "m.png")
    assert result.exit_code == 0, result.stderr
    assert "Wrote m.png." in result.stderr and Path("m.png").stat().st_size > 10_000
    rows = pd.read_csv(io.StringIO(result.stdout))
    options = MultiverseOptions(
        conventions=("corrected",), units=("paper", "cosine"), eps=(0.01, 0.1), batch_factors=(1.0,), epochs=("best",)
    )
    universes = Multiverse.of(Study.open("runs/tiny"), options)
    assert not universes.tasks() and tuple(rows.columns) == COLUMNS
    expected = universes.rows()
    assert rows["difference"].tolist() == pytest.approx(expected["difference"].tolist(), nan_ok=True)
    pd.testing.assert_frame_equal(claim_shares(rows), claim_shares(expected))
    again = lossscope("study", "multiverse", "runs/tiny", *WORDS, "best", "--format", "json")
    assert "To compute: 0 sweeps and 0 evaluations; 8 of 8 are kept." in message(again)
    found = document(again)
    assert found["schema"] == "lossscope.multiverse/1" and found["command"]["eps"] == [0.01, 0.1]
    assert len(found["rows"]) == len(rows) and found["rows"][0]["epoch"] == "best"
    Path("rows.csv").write_text(result.stdout, encoding="utf-8")
    assert set(read_rows("rows.csv", COLUMNS)["holds"].dropna().astype(str)) <= {"True", "False"}
    drawn = lossscope("render", "multiverse", "rows.csv", "-o", "again.svg")
    assert drawn.exit_code == 0 and Path("again.svg").is_file(), drawn.stderr
    printed = lossscope("render", "multiverse", "rows.csv")
    assert "Claimed orderings of tiny" in printed.stdout, printed.stderr


def test_the_table_says_that_universes_are_no_samples() -> None:
    words = ("--metric", "i2t_count", "--only", "scenes", *WORDS, "last")
    result = lossscope("study", "multiverse", "tiny.toml", *words)
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "1 claim, 0 printed by the paper and 1 ours" in text and "no p-value follows" in text
    assert "Per cent of the defined universes at each level" in text


def test_pairs_without_an_ordering_are_named() -> None:
    words = ("--metric", "i2t_W_neg", "--metric", "i2t_count", *WORDS, "last", "--dry-run")
    result = lossscope("study", "multiverse", "tiny.toml", *words)
    assert result.exit_code == 0, result.stderr
    assert "Note: no ordering: i2t_W_neg (scenes, VSE++): not a number of Triplet." in message(result)


@each("words, code, text", [
    (("--metric", "i2t_C_9"), 1, "--metric must be one that a run has; got i2t_C_9. Runs have"),
    (("--only", "COCO"), 1, "must be an entry of the study, of scenes, VSE++, NT-Xent, Triplet; got 'COCO'"),
    (("--claims", "printed"), 1, "none is printed by any paper: the study names none"),
    (("--eps", "low"), 2, "--eps must be numbers with commas, as 0.5,1,2; got 'low'"),
    (("--units", "metre"), 2, "--units must be of paper, relative, cosine, with commas; got 'metre'"),
    (("--epochs", "best,all"), 2, "--epochs all stands alone; got best,all"),
    (("--conventions", "released", "--units", "cosine"), 1, "released and text count in the unit paper alone"),
    (("--picture", "m.gif"), 2, "--picture must end in .pdf, .png or .svg"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(words: tuple[str, ...], code: int, text: str) -> None:
    result = lossscope("study", "multiverse", "runs/tiny", "--dry-run", *words)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert text in message(result)


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    result = lossscope("study", "multiverse", tmp_path)
    assert result.exit_code == 1 and "must be the folder of a study" in message(result)
