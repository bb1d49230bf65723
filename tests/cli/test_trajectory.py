"""`lossscope trajectory`: is its table readable: dashes, decimals, and the epochs of a warm-up marked?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from lossscope.errors import InputError, NoRows
from lossscope.tables import trajectory
from tests.command_line import lossscope, plain

EPOCHS = (
    "epoch,loss,rsum,pos_mean,neg_mean\n0,,13.84,0.07254,0.1649\n1,3226.4,50.72,-0.0001,0.3572\n"
    "2,63.731,106.6,0.3417,0.5429\n"
)
STEPS = "epoch,step,loss,objective\n1,1,3226.4,triplet\n2,1,63.731,triplet_sh\n"


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def run() -> str:
    """Write a run of a study, in a folder named as all of them are; its first epoch is a warm-up."""
    folder = Path("runs/scenes--vse--triplet-sh--seed0/run")
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text(EPOCHS, encoding="utf-8")
    (folder / "trajectory.csv").write_text(STEPS, encoding="utf-8")
    (folder / "config.toml").write_text('warmup = 1\nobjective = "triplet_sh:margin=0.2"\n', encoding="utf-8")
    return str(folder)


def test_the_table_has_dashes_few_decimals_and_the_warmup(run: str) -> None:
    """The table printed NaN, four digits of everything, and no warm-up."""
    result = lossscope("trajectory", run, "--quiet")
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["0", "–", "13.8", "0.073", "0.165"] in lines
    assert ["1", "triplet", "3226.4", "50.7", "0.000", "0.357"] in lines
    assert ["2", "63.73", "106.6", "0.342", "0.543"] in lines
    assert "nan" not in result.stdout.lower() and "trained with another loss" in result.stdout
    assert "seed0" in result.stdout and "Run run" not in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_csv_and_json_have_every_column_and_the_warmup(run: str) -> None:
    printed = lossscope("trajectory", run, "--quiet", "--format", "csv").stdout
    Path("epochs.csv").write_text(printed, encoding="utf-8")
    frame = pd.read_csv("epochs.csv")
    assert frame["warmup"].fillna("").tolist() == ["", "triplet", ""] and frame["loss"].iloc[1] == 3226.4
    assert json.loads(lossscope("trajectory", run, "--quiet", "--format", "json").stdout)[0]["loss"] is None
    made = lossscope("table", "trajectory", "epochs.csv")
    assert made.exit_code == 0 and re.search(r"1 +triplet +3226\.4", made.stdout)


def test_two_runs_have_their_names_and_a_run_without_warmup_no_note() -> None:
    rows = [{"run": run, "epoch": 0, "loss": 1.0, "rsum": 2.0, "pos_mean": 0.1, "neg_mean": 0.2} for run in "ab"]
    table = trajectory.build(pd.DataFrame(rows))
    assert [row[0].text for row in table.rows] == ["a", "b"] and not table.notes
    assert "warm-up" not in table.to_text(80)
    with pytest.raises(InputError, match="Add neg_mean"):
        trajectory.build(pd.DataFrame(rows).drop(columns="neg_mean"))
    with pytest.raises(NoRows, match="must have rows of epochs"):
        trajectory.build(pd.DataFrame(rows)[:0])


def test_rows_with_the_bare_name_of_a_score_are_titled_by_it() -> None:
    """The rows were titled rsum, with one decimal."""
    rows = [{"run": "a", "epoch": 0, "loss": 1.0, "nDCG@10": 0.4567, "pos_mean": 0.1, "neg_mean": 0.2}]
    table = trajectory.build(pd.DataFrame(rows))
    text = table.to_text(80)
    assert "nDCG@10" in text and "0.457" in text and "rsum" not in text


def test_runs_of_different_sides_are_not_drawn_together(run: str) -> None:
    """The second run was dashes, and was not drawn."""
    other = Path("runs/passages/run")
    other.mkdir(parents=True)
    metrics = "epoch,loss,q2d_nDCG@10,d2q_nDCG@10,pos_mean,neg_mean\n0,,0.1,0.1,0.07,0.16\n1,3.4,0.5,0.4,0.1,0.1\n"
    (other / "metrics.csv").write_text(metrics, encoding="utf-8")
    result = lossscope("trajectory", run, str(other))
    assert result.exit_code != 0
    message = plain(result.stderr)
    assert "runs of a trajectory must be of the same sides; got rsum of" in message and "q2d_nDCG@10 of" in message
    assert lossscope("trajectory", str(other)).exit_code == 0
