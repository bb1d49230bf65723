"""Does the doctor read event files of torch: whole, truncated and damaged?"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError
from lossscope.io.tensorboard_events import read_scalars

pytest.importorskip("tensorboard")
Curves = Mapping[str, Sequence[tuple[int, float]]]
TRAINED: Curves = {
    "train/loss": [(1, 4.5), (100, math.nan), (200, math.inf), (300, 3.0)],
    "train/lr": [(1, 0.5), (100, 0.5), (200, 0.25), (300, 0.125)],
    "train/scale": [(1, 14.0), (300, 16.0)],
    "val/image_to_text_R@1": [(1, 0.25), (2, 0.5)],
    "val/epoch": [(1, 1), (2, 2)],
}


def write(folder: Path, curves: Curves = TRAINED, **options: Any) -> Path:
    """Write an event file of these curves."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), **options) as writer:
        for tag, values in curves.items():
            for step, value in values:
                writer.add_scalar(tag, value, step)
    return sorted(folder.glob("events.out.tfevents.*"))[-1]


def test_a_file_and_its_folder(tmp_path: Path) -> None:
    file = write(tmp_path)
    for path in (file, tmp_path):
        log = read_log(path)
        assert log.steps["step"].tolist() == [1, 100, 200, 300] and log.steps["lr"].tolist() == [0.5, 0.5, 0.25, 0.125]
        assert log.steps["loss"].isna().tolist() == [False, True, False, False] and math.isinf(log.steps["loss"][2])
        assert log.steps["logit_scale"].isna().tolist() == [False, True, True, False]
        assert log.evaluations["step"].tolist() == [150, 300]
        assert log.evaluations["val_recall_first"].tolist() == [0.25, 0.5]
        assert any("at epochs" in notice for notice in log.notices)


def test_a_folder_below_and_columns_of_the_user(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "Nov23")
    assert read_log(tmp_path, {"loss": "train/scale"}).steps["loss"].tolist() == [14.0, 16.0]


def test_a_resumed_training_writes_a_second_file(tmp_path: Path) -> None:
    write(tmp_path, {"loss": [(1, 4.0), (2, 3.0), (3, 9.0)]}, filename_suffix=".a")
    write(tmp_path, {"loss": [(3, 2.0), (4, 1.0)]}, filename_suffix=".b")
    assert read_log(tmp_path).steps["loss"].tolist() == [4, 3, 2, 1]


def test_folders_of_splits_are_one_training_and_others_are_not(tmp_path: Path) -> None:
    write(tmp_path / "train", {"epoch_loss": [(0, 4.0), (1, 3.0)]})
    write(tmp_path / "validation", {"epoch_loss": [(0, 4.5), (1, 3.5)]})
    log = read_log(tmp_path)
    assert log.steps["loss"].tolist() == [4, 3] and log.evaluations["val_loss"].tolist() == [4.5, 3.5]
    write(tmp_path / "other", {"epoch_loss": [(0, 4.0)]})
    with pytest.raises(InputError, match="must hold one training; it has 3: other, train, validation"):
        read_log(tmp_path)


def test_pictures_and_histograms_are_passed_over(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 4.0, 1)
        writer.add_histogram("weights", np.arange(9.0), 1)
        writer.add_image("picture", np.random.default_rng(0).random((3, 200, 200)), 1)
        writer.add_text("note", "text", 1)
        writer.add_scalar("loss", 3.0, 2)
        writer.add_scalar("other", 3.0, 2, new_style=True)
    log = read_log(tmp_path, {"lr": "other"})
    assert log.steps["loss"].tolist() == [4, 3] and log.steps["lr"].tolist()[1] == 3 and log.notices == ()


def test_of_a_file_that_is_cut_off_what_is_whole_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, {"loss": [(step, 1.0) for step in range(50)]})
    whole = file.read_bytes()
    for size in (len(whole) - 1, len(whole) - 20, len(whole) - 50):
        file.write_bytes(whole[:size])
        log = read_log(file)
        assert 47 <= len(log.steps) < 50 and "it is cut off" in log.notices[0]


def test_what_stands_behind_a_damaged_record_is_left_out(tmp_path: Path) -> None:
    file = write(tmp_path, {"loss": [(step, 1.0) for step in range(50)]})
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    log = read_log(file)
    assert 15 < len(log.steps) < 35 and "checksum" in log.notices[0]


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", bytes(1000), b"\xff" * 5000])
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "events.out.tfevents.1.host"
    file.write_bytes(content)
    with pytest.raises(InputError, match="must be a TensorBoard event file; it has no whole event"):
        read_log(file)


def test_a_folder_without_events_and_a_file_without_scalars(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold files events.out.tfevents.\*; it has none"):
        read_log(tmp_path)
    write(tmp_path / "empty", {})
    with pytest.raises(InputError, match="must hold scalars; it has none"):
        read_log(tmp_path / "empty")


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with pytest.raises(InputError, match=r"needs tensorboard, .*: pip install 'lossscope\[tb\]'"):
        read_scalars(file)
