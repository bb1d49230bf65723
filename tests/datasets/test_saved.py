"""Is a folder of save_to_disk read as the package `datasets` reads it, without that package?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lossscope.datasets.base import Dataset
from lossscope.datasets.saved import Saved
from lossscope.errors import InputError
from lossscope.io import arrow_rows
from lossscope.io.saved_datasets import iter_saved_rows
from lossscope.registry import build
from tests.each import each

ROWS = [{"query": f"q{n}", "positives": [f"p{n}", "p"], "negative": f"n{n}"} for n in range(2500)]


def write(folder: Path, rows: list[dict[str, Any]], files: int = 1) -> Path:
    """Write what save_to_disk writes."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{number:05d}-of-{files:05d}.arrow" for number in range(files)]
    for number, name in enumerate(names):
        table = pa.Table.from_pylist(rows[number::files])
        with pa.OSFile(str(folder / name), "w") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, max_chunksize=1000)
    state = {"_data_files": [{"filename": name} for name in names], "_format_type": None, "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))
    return folder


def write_splits(folder: Path, **splits: list[dict[str, Any]]) -> Path:
    for name, rows in splits.items():
        write(folder / name, rows)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    return folder


def test_splits_of_a_dict_are_folders(tmp_path: Path) -> None:
    data = Saved(str(write_splits(tmp_path, test=ROWS[:3], train=ROWS, validation=ROWS[5:9])))
    assert isinstance(data, Dataset)
    assert data.splits() == ("train", "val", "test")
    assert (len(data.split("train").images), len(data.split("validation").captions)) == (2500, 9)
    assert data.split("val").image_ids[0] == "val-q00000"
    with pytest.raises(InputError, match="must be one of train, val, test; got 'none'"):
        data.split("none")


def test_one_split_is_cut_and_its_files_are_read_in_order(tmp_path: Path) -> None:
    data = build("datasets", f"saved:root={write(tmp_path, ROWS, files=3)}")
    assert data.splits() == ("train", "val", "test", "all")
    assert data.split("all").images.texts[:3] == ["q0", "q3", "q6"]
    whole = Saved(str(tmp_path), val_share=0, test_share=0)
    assert whole.splits() == ("train",) and len(whole.split("train").images) == 2500


def test_the_package_datasets_writes_what_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list(ROWS[:50])
    datasets.DatasetDict(train=table.shuffle(seed=0), test=table.select([4, 2])).save_to_disk(str(tmp_path / "a"))
    data = Saved(str(tmp_path / "a"))
    assert data.split("test").images.texts == ["q4", "q2"]  # type: ignore[attr-defined]
    assert sorted(data.split("train").images.texts) == sorted(row["query"] for row in ROWS[:50])  # type: ignore[attr-defined]


def test_the_package_datasets_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert len(Saved(str(write(tmp_path, ROWS))).split("all").images) == 2500


@each("file, content, says", [
    ("state.json", "{}", r"state\.json must have the key '_data_files'"),
    ("state.json", '{"_data_files": [{"filename": "../secret"}]}', "must be of files beside it; got '../secret'"),
    ("state.json", '{"_data_files": [{"filename": 5}]}', "must be text; got 5"),
    ("state.json", '{"_data_files": [], "_indices_data_files": [1]}', "an old release chose them by indices"),
    ("state.json", '{"_data_files": [{"filename": "none.arrow"}]}', r"none\.arrow must exist"),
    ("state.json", '{"_data_files": []}', "must have at least one row of the split 'train'"),
    (
        "state.json",
        '{"_data_files": [{"filename": "data"}]}',
        r"files of .*state.json must be .arrow files; got 'data'",
    ),
    (
        "state.json",
        '{"_data_files": [{"filename": ".arrow"}]}',
        r"files of .*state.json must be .arrow files; got '.arrow'",
    ),
    ("dataset_dict.json", '{"splits": ["val", "validation"]}', "splits of .* must be different"),
    ("dataset_dict.json", '{"splits": []}', "must have splits; it has none"),
    ("dataset_dict.json", '{"splits": ["/etc"]}', "must be of files beside it; got '/etc'"),
])  # fmt: skip
def test_folders_that_are_damaged(file: str, content: str, says: str, tmp_path: Path) -> None:
    write(tmp_path, ROWS[:3])
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=says):
        Saved(str(tmp_path), val_share=0, test_share=0).split("train")


def test_a_batch_of_rows_is_checked_once_and_only_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of 512 rows checked the texts of its whole batch: the time grew as the square of the rows."""
    checked: list[int] = []
    check = arrow_rows._require_whole
    monkeypatch.setattr(
        arrow_rows, "_require_whole", lambda batch, *rest: (checked.append(len(batch)), check(batch, *rest))
    )
    file = str(write(tmp_path, ROWS) / "data-00000-of-00001.arrow")
    assert [len(block.lines) for block in iter_saved_rows(file, bool)] == [512, 488, 512, 488, 500]
    assert checked == [1000, 1000, 500]
    assert [block.number for block in iter_saved_rows(file, bool, {3})] == [3] and checked[3:] == [1000]


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"must be a folder that save_to_disk wrote; it has no dataset_dict.json and no"
    ):
        Saved(str(tmp_path)).splits()
