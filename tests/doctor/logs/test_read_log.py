"""Which reader reads a path?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError


def test_a_path_may_be_text_and_a_folder_of_lightning(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,train_loss\n1,4\n")
    assert read_log(str(tmp_path)).steps["loss"].tolist() == [4]
    assert read_log(str(tmp_path / "metrics.csv")).name.endswith("metrics.csv")


@pytest.mark.parametrize("name", ["log.xlsx", "log", "model.pt"])
def test_other_kinds_of_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"1")
    with pytest.raises(InputError, match=r"a log must be a table \(.csv, .*; got .*Give it one of these names"):
        read_log(tmp_path / name)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.csv"):
        read_log(tmp_path / "missing.csv")
