"""Does the doctor read tables of steps: ours, Lightning's, exports of W&B, and damaged ones?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.doctor.logs.base import TrainingLog
from lossscope.doctor.logs.read_log import read_log
from lossscope.doctor.parts.learnt_scale import LearntScale
from lossscope.doctor.parts.patient import Patient
from lossscope.errors import InputError
from lossscope.live.monitor import LossScope

SYNONYMS = {
    "step": ("step", "global_step", "Iteration", "_step"),
    "loss": ("loss", "train_loss", "train/loss", "Loss/train", "contrastive loss"),
    "lr": ("lr", "learning_rate", "train/lr", "Learning-Rate"),
    "grad_norm": ("grad_norm", "gradient_norm", "train.grad_norm", "total_norm"),
    "logit_scale": ("logit_scale", "train/scale", "logit_scale.exp"),
    "val_loss": ("val_loss", "eval_loss", "validation/loss", "clip_val_loss"),
    "val_recall": ("val_recall", "val_R@1", "eval/recall@1", "rsum"),
}


def read(folder: Path, text: str, name: str = "log.csv", columns: dict[str, str] | None = None) -> TrainingLog:
    """Return the log of a file with this text."""
    (folder / name).write_text(text, encoding="utf-8")
    return read_log(folder / name, columns)


def test_a_plain_table(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,lr\n1,4.5,0.1\n2,4.0,0.1\n")
    assert log.steps.to_dict("list") == {"step": [1, 2], "loss": [4.5, 4.0], "lr": [0.1, 0.1]}
    assert (log.steps.dtypes == np.float64).all()
    assert log.evaluations.columns.tolist() == ["step"] and log.evaluations.empty
    assert log.columns == {"step": "step", "loss": "loss", "lr": "lr"}
    assert (log.objective, log.batch_size, log.notices) == (None, None, ())
    assert log.name.endswith("log.csv")


@pytest.mark.parametrize(("name", "delimiter"), [("a.tsv", "\t"), ("a.txt", "\t"), ("a.csv", ";"), ("a.log", ",")])
def test_tabs_and_semicolons(tmp_path: Path, name: str, delimiter: str) -> None:
    text = "\ufeffstep,train/loss\r\n1,4.5\r\n2,4\r\n".replace(",", delimiter)
    assert read(tmp_path, text, name).steps["loss"].tolist() == [4.5, 4.0]


def test_rows_of_lightning(tmp_path: Path) -> None:
    text = "epoch,lr-Adam,step,train_loss_epoch,train_loss_step,val_acc,val_loss\n"
    text += (
        "0,0.001,48,,,,\n0,,49,,4.5,,\n0,,99,,4.0,,\n0,,120,,,0.5,4.2\n0,,120,4.1,,,\n1,,149,,3.0,,\n1,,241,,,0.6,3.9\n"
    )
    log = read(tmp_path, text)
    assert log.steps["step"].tolist() == [49, 99, 149] and log.steps["loss"].tolist() == [4.5, 4.0, 3.0]
    assert log.steps["lr"].tolist()[0] == 0.001 and log.steps["lr"].isna().tolist() == [False, True, True]
    assert log.evaluations.to_dict("list") == {"step": [120, 241], "val_loss": [4.2, 3.9], "val_recall": [0.5, 0.6]}
    assert log.notices == ()


def test_an_export_of_wandb(tmp_path: Path) -> None:
    text = '"Step","fox-3 - train/loss","fox-3 - train/loss__MIN","fox-3 - train/loss__MAX"\n'
    text += '"0","4.5","4.5","4.5"\n"50","NaN","NaN","NaN"\n"100","Infinity","4","4"\n'
    losses = read(tmp_path, text).steps["loss"].tolist()
    assert losses[0] == 4.5 and math.isnan(losses[1]) and math.isinf(losses[2])


def test_infinite_and_nan_losses_are_kept(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,grad_norm\n1,4,1\n2,nan,inf\n3,-inf,nan\n4,,\n5,NaN,\n6,3,1\n")
    assert log.steps["step"].tolist() == [1, 2, 3, 5, 6]
    assert log.steps["loss"].isna().tolist() == [False, True, False, True, False]
    assert log.steps["loss"][2] == -math.inf and log.steps["grad_norm"][1] == math.inf


def test_losses_that_pandas_wrote_as_empty_are_nan(tmp_path: Path) -> None:
    frame = pd.DataFrame({"step": range(6), "loss": [4, 3, 2, np.nan, np.nan, np.nan], "lr": 0.1})
    log = read(tmp_path, frame.to_csv(index=False))
    assert len(log.steps) == 6 and log.steps["loss"].isna().sum() == 3
    assert any("count as NaN" in notice for notice in log.notices)
    sparse = "step,loss,lr\n0,4,1\n1,,1\n2,3,1\n3,,1\n"
    assert read(tmp_path, sparse).steps["step"].tolist() == [0, 2]


def test_the_history_of_lossscope(tmp_path: Path) -> None:
    scope = LossScope("ntxent:tau=0.05")
    for step, S in enumerate((torch.eye(4), torch.full((4, 4), torch.nan), torch.eye(4))):
        scope.watch(S, step=step)
        scope.history[-1]["loss"] = float(S[0, 0])
    scope._columns["loss"] = None
    for name in ("log.csv", "log.parquet"):
        log = read_log(scope.save(tmp_path / name))
        assert log.steps["step"].tolist() == [0, 1, 2]
        assert log.steps["loss"].isna().tolist() == [False, True, False]
        assert log.steps["positive"][0] == 1 and log.steps["hardest_negative"][0] == 0
        assert log.columns["positive"] == "i2t/s_pos" and log.columns["hardest_negative"] == "i2t/s_neg"


def test_steps_that_begin_anew_in_each_epoch_are_counted_through(tmp_path: Path) -> None:
    from_1 = read(tmp_path, "epoch,step,loss,val_loss\n1,1,4,\n1,2,3,\n1,2,,9\n2,1,2,\n2,2,1,\n2,2,,8\n")
    assert from_1.steps["step"].tolist() == [1, 2, 3, 4] and from_1.evaluations["step"].tolist() == [2, 4]
    assert from_1.notices == ("step begins anew in each epoch: steps are counted through",)
    from_0 = read(tmp_path, "epoch,batch,loss\n0,0,4\n0,10,3\n1,0,2\n1,10,1\n")
    assert from_0.steps["step"].tolist() == [0, 10, 20, 30]


def test_epochs_alone_are_the_steps_and_rows_the_last_resort(tmp_path: Path) -> None:
    keras = read(tmp_path, "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.1,4,0.2,4.1\n1,0.3,3,0.2,4.2\n")
    assert keras.steps.to_dict("list") == {"step": [0, 1], "loss": [4, 3], "train_recall": [0.1, 0.3]}
    assert keras.evaluations["val_recall"].tolist() == [0.2, 0.2] and keras.evaluations["step"].tolist() == [0, 1]
    rows = read(tmp_path, "loss\n4\n3\n")
    assert rows.steps["step"].tolist() == [0, 1] and "has no steps" in rows.notices[0]


def test_a_resumed_run_keeps_the_later_row_of_a_step(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss\n1,4\n2,3\n3,9\n2,2\n3,1\n")
    assert log.steps["loss"].tolist() == [4, 2, 1] and "goes back to an earlier step 1 times" in log.notices[0]
    twice = read(tmp_path, "step,loss\n1,4\n1,3\n2,2\n")
    assert twice.steps["loss"].tolist() == [3, 2] and "several losses: the last one counts" in twice.notices[0]


def test_a_temperature_becomes_a_scale(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,tau\n1,4,0.05\n2,3,0.1\n")
    assert log.steps["logit_scale"].tolist() == [20, 10] and log.notices == (
        "tau is a temperature: logit_scale is 1 / tau",
    )
    scale = read(tmp_path, "step,loss,temperature\n1,4,14.3\n2,3,20\n")
    assert scale.steps["logit_scale"].tolist() == [14.3, 20] and "the scale itself" in scale.notices[0]


@pytest.mark.parametrize(
    ("name", "logged", "scale", "notice"),
    [
        ("t_prime", (0.0, 2.5), (1, 12.18), "t_prime is the logarithm of the scale: logit_scale is exp(t_prime)"),
        ("log_logit_scale", (0.9, 2.5), (2.46, 12.18), "is the logarithm of the scale"),
        ("log_temperature", (-2.66, -1.0), (14.3, 2.718), "logit_scale is exp(-log_temperature)"),
        ("log_temperature", (2.66, 1.0), (14.3, 2.718), "logit_scale is exp(log_temperature)"),
        ("log_scale", (14.3, 100.0), (14.3, 100), "is above 6: it counts as the scale itself"),
        ("logit_scale", (2.66, 0.5), (14.3, 1.649), "begins at 2.66 and stays below 6, as the logarithm of a scale"),
        ("logit_scale", (1.0, 4.5), (1, 4.5), "if it is the logarithm of the scale, log its exp()"),
        ("logit_scale", (14.3, 1.0), (14.3, 1), None),
        ("logit_scale.exp", (2.66, 0.5), (2.66, 0.5), None),
    ],
)
def test_a_logarithm_becomes_a_scale_once(
    name: str, logged: tuple[float, float], scale: tuple[float, float], notice: str | None, tmp_path: Path
) -> None:
    """Also where the scale looks like a logarithm itself: exp(0.9) is 2.46."""
    rows = "".join(f"{step},4,{logged[min(step // 30, 1)]}\n" for step in range(40))
    log = read(tmp_path, f"step,loss,{name}\n{rows}")
    patient = Patient("log", given={TrainingLog: log})
    for values in (log.steps["logit_scale"].to_numpy(), patient.part(LearntScale).scale):
        assert values[[0, -1]] == pytest.approx(scale, rel=2e-3)
    assert len(log.notices) == (notice is not None) and (notice or "") in "".join(log.notices)


def test_negatives_that_may_not_be_the_hardest_are_noticed(tmp_path: Path) -> None:
    assert "hardest negatives" in read(tmp_path, "step,loss,neg_sim\n1,4,0.2\n").notices[0]


def test_the_mean_of_both_directions_stands_for_a_recall(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,i2t_R@1,t2i_R@1\n1,4,,\n20,4,10,30\n")
    assert log.evaluations["val_recall"].tolist() == [20] and log.notices == (
        "val_recall is the mean of both directions",
    )


def test_the_users_columns_win(tmp_path: Path) -> None:
    log = read(tmp_path, "n,loss,mine\n10,4,5\n20,3,6\n", columns={"loss": "mine", "step": "n"})
    assert log.steps.to_dict("list") == {"step": [10, 20], "loss": [5, 6]}


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    log = read(tmp_path, "step,loss,lr\n1,4,1\n2,3")
    assert len(log.steps) == 1 and log.notices == ("line 3 is cut off and left out",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("step,loss\n1,4\n2,tensor(3.)\n", r"loss in line 3 of .*log.csv must be a number, .*; got 'tensor\(3.\)'"),
        ("step,loss,lr\n1,4,fast\n", "lr in line 2 of .* must be a number"),
        ("step,loss\n1,4\n2,3,5\n3,1\n", r"must have 2 values, as its header; got 3 in line 3"),
        ("step,loss,loss\n1,4,4\n", "must have different names; got 'loss' twice"),
        ("step,loss\n", "must have rows below its header; it has none"),
        ("", "it has no header"),
        ("\n", "it has no header"),
        ("step,loss\n-1,4\n", "step of .* must be finite and at least 0"),
        ("step,loss\nnan,4\n", "step of .* must be finite and at least 0"),
        ("step,loss\n1,\n", "must have a column of the training loss"),
        ('step,loss\n1,"4\n', "must be a whole CSV table; got unexpected end of data in the row that begins in line 2"),
        ("step,loss\n1,\0\n", "NUL"),
        ("step,value\n1,4\n", "--column loss=NAME"),
        (",".join(map(str, range(1001))) + "\n", "at most 1000 columns"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, text)


def test_texts_in_columns_that_are_not_read_do_no_harm(tmp_path: Path) -> None:
    assert len(read(tmp_path, "step,loss,host\n1,4,a\n2,3,b\n").steps) == 2


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match="must be a whole parquet file"):
        read_log(tmp_path / "log.parquet")


@given(st.data())
def test_names_do_not_matter(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("log")
    fields = data.draw(
        st.lists(st.sampled_from(sorted(SYNONYMS)), unique=True).map(lambda names: {*names, "loss", "step"})
    )
    order = data.draw(st.permutations(sorted(fields)))
    number = st.one_of(st.floats(-100, 100), st.sampled_from([math.nan, math.inf]))
    rows = data.draw(st.lists(st.tuples(*(number for _ in order)), min_size=1, max_size=5))
    lines = [",".join(str(index * 10) if name == "step" else str(cell) for name, cell in zip(order, row, strict=True))
             for index, row in enumerate(rows)]  # fmt: skip
    names = [data.draw(st.sampled_from(SYNONYMS[field])) for field in order]
    plain = read(folder, "\n".join([",".join(order), *lines, ""]))
    renamed = read(folder, "\n".join([",".join(names), *lines, ""]))
    pd.testing.assert_frame_equal(plain.steps, renamed.steps)
    pd.testing.assert_frame_equal(plain.evaluations, renamed.evaluations)
    assert renamed.columns == dict(zip(order, names, strict=True))


def test_parquet_columns_of_other_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"step": [1, 2], "loss": np.array([4, 3], np.float32), "lr": pd.array([None, 0.5], "Float64")})
    frame.to_parquet(tmp_path / "log.parquet")
    steps = read_log(tmp_path / "log.parquet").steps
    assert (steps.dtypes == np.float64).all() and steps["loss"].tolist() == [4, 3] and steps["lr"].tolist()[1] == 0.5
