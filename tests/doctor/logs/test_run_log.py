"""Does the doctor read a run folder of ours, of images and captions and of other sides?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError
from lossscope.io.run_folder import Run


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """Return the tables of a run, for a test to change."""
    for name in ("trajectory.csv", "metrics.csv", "config.toml"):
        shutil.copy(tiny_run / name, tmp_path / name)
    return tmp_path


def test_steps_and_evaluations_of_a_run(tiny_run: Path) -> None:
    log = read_log(tiny_run)
    rows, epochs = pd.read_csv(tiny_run / "trajectory.csv"), Run(tiny_run).epochs()
    assert log.steps["step"].tolist() == list(range(1, len(rows) + 1))
    for field, name in {"loss": "loss", "grad_norm": "gradient_norm", "lr": "lr", "positive": "pos_mean"}.items():
        assert log.steps[field].tolist() == rows[name].tolist()
    assert log.steps["hardest_negative"].tolist() == rows["neg_mean"].tolist()
    assert log.steps["objective"].unique().tolist() == ["ntxent"]
    assert log.evaluations["step"].tolist() == [0, len(rows) // 2, len(rows)]
    assert log.evaluations["val_recall"].tolist() == epochs["rsum"].tolist()
    assert log.evaluations["val_recall_first"].tolist() == epochs["i2t_R@1"].tolist()
    assert log.evaluations["val_recall_second"].tolist() == epochs["t2i_R@1"].tolist()
    assert log.batch_size == 32 and str(log.objective).startswith("ntxent:tau=")
    assert log.columns["grad_norm"] == "gradient_norm" and log.columns["val_recall"] == "rsum"


def test_the_trajectory_alone_gives_the_same_steps(tiny_run: Path) -> None:
    whole, alone = read_log(tiny_run), read_log(tiny_run / "trajectory.csv")
    pd.testing.assert_frame_equal(whole.steps.drop(columns="objective"), alone.steps[list(whole.steps.columns[:-1])])


def test_ndcg_is_the_recall_of_other_sides(run: Path) -> None:
    (run / "metrics.csv").write_text(
        "epoch,loss,q2d_nDCG@10,q2d_recall@1,d2q_nDCG@10,d2q_recall@1\n1,2,0.5,10,0.6,20\n"
    )
    row = read_log(run).evaluations.iloc[0]
    assert (row["val_recall"], row["val_recall_first"], row["val_recall_second"]) == (0.5, 10, 20)


def test_a_warm_up_is_told_by_its_objective(run: Path) -> None:
    rows = pd.read_csv(run / "trajectory.csv")
    rows["objective"] = ["ntxent" if epoch == 1 else "triplet" for epoch in rows["epoch"]]
    rows.to_csv(run / "trajectory.csv", index=False)
    assert read_log(run).steps["objective"].tolist() == rows["objective"].tolist()


def test_a_run_under_way_and_one_without_a_config(run: Path) -> None:
    (run / "config.toml").unlink()
    (run / "metrics.csv").unlink()
    with open(run / "trajectory.csv", "a") as file:
        file.write("3,1,ntx")
    log = read_log(run)
    assert log.evaluations.empty and log.objective is None and log.batch_size is None


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("trajectory.csv", "epoch,step,loss\n", "must have rows; it has none"),
        ("trajectory.csv", "epoch,loss\n1,2\n", "must have the columns epoch, step, loss"),
        ("trajectory.csv", "epoch,step,loss\n1,1.5,2\n", "must be whole numbers"),
        ("trajectory.csv", "epoch,step,loss\n1,inf,2\n", "must be whole numbers"),
        ("trajectory.csv", "epoch,step,loss\n1,1,low\n", "column loss of .* must be of numbers"),
        ("metrics.csv", "epoch,rsum\n1,high\n", "column rsum of .* must be of numbers"),
        ("config.toml", "batch_size = 'big'\n", "must be a whole number"),
    ],
)
def test_damage_is_named(run: Path, file: str, text: str, says: str) -> None:
    (run / file).write_text(text)
    with pytest.raises(InputError, match=says):
        read_log(run)


def test_columns_of_a_run_cannot_be_chosen(tiny_run: Path) -> None:
    with pytest.raises(InputError, match="leave --column out"):
        read_log(tiny_run, {"loss": "loss"})
