"""Does the doctor read what trainers print: meters, dictionaries, progress bars, and the lines between them?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lossscope.doctor.logs.base import TrainingLog
from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError

EPOCHS, BATCHES = 3, range(0, 200, 40)


def loss_at(epoch: int, batch: int) -> float:
    return round(4 - epoch - batch / 200, 4)


def moco(epoch: int, batch: int) -> str:
    numbers = f"Time  0.350 ( 0.617)\tLoss {loss_at(epoch, batch):.4e} (9.9e+00)\tAcc@1  12.50 ( 13.10)"
    return f"Epoch: [{epoch}][{batch:4d}/200]\t{numbers}\n"


def torchreid(epoch: int, batch: int) -> str:
    numbers = f"time 0.148 (0.313)\tdata 0.000 (0.046)\teta 1:54:45\tloss {loss_at(epoch, batch)} (9.9)\tlr 0.002"
    return f"epoch: [{epoch + 1}/125][{batch}/200]\t{numbers}\n"


def timm(epoch: int, batch: int) -> str:
    numbers = f"Loss: {loss_at(epoch, batch)} (9.9)  Time: 1.245s,  822.31/s  (1.245s,  822.31/s)  LR: 1.000e-06"
    return f"Train: {epoch} [{batch:4d}/200 ({batch // 2:3d}%)]  {numbers}\n"


def words(epoch: int, batch: int) -> str:
    return f"INFO Epoch [{epoch}/3], Step [{batch}/200], Train Loss: {loss_at(epoch, batch)}, GPU memory 12/80GB\n"


def lightning(epoch: int, batch: int) -> str:
    bar = f"[00:10<00:10, 19.5it/s, v_num=0, train_loss={loss_at(epoch, batch)}]"
    return f"Epoch {epoch}:  {batch // 2}%|█████     | {batch}/200 {bar}\r"


def keras(epoch: int, batch: int) -> str:
    head = f"Epoch {epoch + 1}/3\n" if batch == 0 else ""
    return f"{head} {batch}/200 [=>....] - ETA: 1:02 - loss: {loss_at(epoch, batch)} - accuracy: 0.03\r"


def read(folder: Path, text: str, name: str = "train.log", columns: dict[str, str] | None = None) -> TrainingLog:
    (folder / name).write_text(text, encoding="utf-8")
    return read_log(folder / name, columns)


@pytest.mark.parametrize("form", [moco, torchreid, timm, words, lightning, keras], ids=lambda form: form.__name__)
@pytest.mark.parametrize("name", ["train.log", "nohup.out", "train.txt", "train.csv"])
def test_losses_stand_at_their_steps_through_all_epochs(
    form: Callable[[int, int], str], name: str, tmp_path: Path
) -> None:
    text = "=> creating model 'resnet50'\nNamespace(lr=0.03, batch_size=256)\n"
    log = read(tmp_path, text + "".join(form(epoch, batch) for epoch in range(EPOCHS) for batch in BATCHES), name)
    positions = [(epoch, batch) for epoch in range(EPOCHS) for batch in BATCHES]
    assert log.steps["loss"].tolist() == pytest.approx([loss_at(*position) for position in positions])
    assert log.steps["step"].tolist() == [200 * epoch + batch for epoch, batch in positions]


@pytest.mark.parametrize("quote", ["'", ""])
@pytest.mark.parametrize(
    "between", ["\n", "\n  17%|█         | 100/4000 [00:10<05:00]\n", "\n/a/b.py:3: UserWarning: 2\n"]
)
def test_dictionaries_of_a_trainer_with_numbers_or_texts(quote: str, between: str, tmp_path: Path) -> None:
    """transformers 5 prints numbers as texts and rounds epochs, so that many steps share one."""
    rows = [f"{{'loss': {quote}{4 - k / 10:.2f}{quote}, 'epoch': {quote}{k // 4 / 100}{quote}}}" for k in range(12)]
    evaluated = f"{between}{{'eval_loss': {quote}2.5{quote}, 'eval_runtime': {quote}1.0{quote}}}"
    log = read(tmp_path, between.join(rows) + 2 * evaluated)
    assert log.steps["loss"].tolist() == pytest.approx([4 - k / 10 for k in range(12)])
    assert log.steps["step"].tolist() == list(range(12)) and "with loss are counted from 0" in log.notices[0]
    assert log.evaluations.to_dict("list") == {"step": [11], "val_loss": [2.5]}


def test_a_progress_bar_tells_the_steps_of_dictionaries(tmp_path: Path) -> None:
    rows = (f" 2%|█   | {10 * k}/4000 [00:10<05:00]\r{{'loss': {4 - k / 10}, 'epoch': 0.0}}\n" for k in range(1, 9))
    assert read(tmp_path, "".join(rows)).steps["step"].tolist() == [10 * k for k in range(1, 9)]


def test_steps_that_lines_say_win_and_nan_is_kept(tmp_path: Path) -> None:
    log = read(tmp_path, "[rank0] step=10 loss=4.0 lr=1e-4 12/80\n[rank0] step=30 loss=nan lr=1e-4 13/80\n")
    assert log.steps["step"].tolist() == [10, 30] and log.steps["loss"].isna().tolist() == [False, True]
    assert log.steps["lr"].tolist() == [1e-4, 1e-4]


def test_the_mean_of_a_validation_counts_and_its_batches_are_no_steps(tmp_path: Path) -> None:
    def epoch(number: int) -> str:
        tests = (f"Test: [{k}/100]\tLoss 9.0 ({5.0 - number})\tAcc@1 0.0 ({10.0 * number})\n" for k in (0, 50))
        return "".join(moco(number, batch) for batch in BATCHES) + "".join(tests)

    log = read(tmp_path, "".join(map(epoch, range(3))))
    assert log.evaluations["val_loss"].tolist() == [5, 4, 3] and log.evaluations["val_recall"].tolist() == [0, 10, 20]
    assert log.evaluations["step"].tolist() == [160, 360, 560] and len(log.steps) == 15


def test_a_loss_of_an_unknown_name_is_asked_for_and_chosen(tmp_path: Path) -> None:
    text = "".join(torchreid(epoch, batch).replace("loss", "loss_t") for epoch in range(2) for batch in BATCHES)
    with pytest.raises(InputError, match=r"got epoch, batch, time, data, loss_t, lr\. Name it: --column loss=NAME"):
        read(tmp_path, text)
    assert len(read(tmp_path, text, columns={"loss": "loss_t"}).steps) == 10


def test_a_text_without_numbers_says_what_is_read_and_what_its_first_line_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trainer_state.json, .* Its first line is 'Hello there'\. Print the loss so"):
        read(tmp_path, "\nHello there\nof 3 words: 1:54:45\n")
    with pytest.raises(InputError, match="Its first line is empty"):
        read(tmp_path, "\n")
