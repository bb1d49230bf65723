"""Is an evaluation of another version made again, instead of being read beside new ones?"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.evaluation_folder import SCHEMA, evaluation_state, read_frame, write_evaluation
from tests.each import each


def test_only_an_evaluation_of_this_version_is_read(tmp_path: Path) -> None:
    assert evaluation_state(tmp_path) == "trained, but its evaluation is missing"
    manifest = tmp_path / "evaluation" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"schema": "lossscope.evaluation/1"}), encoding="utf-8")
    assert evaluation_state(tmp_path) == "trained, but evaluated by another version of lossscope"
    manifest.write_text(json.dumps({"schema": SCHEMA}), encoding="utf-8")
    assert evaluation_state(tmp_path) is None


def test_a_frame_that_changed_since_it_was_written_is_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame({"mean": [1.0, 2.0]})
    write_evaluation(tmp_path, {"first": rows, "second": rows}, {"schema": SCHEMA})
    pd.testing.assert_frame_equal(read_frame(tmp_path, "first"), rows)  # type: ignore[arg-type]
    assert read_frame(tmp_path, "third") is None
    (rows * 2).to_parquet(tmp_path / "evaluation" / "first.parquet", index=False)
    with pytest.raises(InputError, match=r"first\.parquet must match its SHA-256; .* Remove its folder"):
        read_frame(tmp_path, "first")
    (tmp_path / "evaluation" / "second.parquet").unlink()
    with pytest.raises(InputError, match=r"second\.parquet must exist"):
        read_frame(tmp_path, "second")


def test_writing_again_leaves_no_frame_of_before(tmp_path: Path) -> None:
    rows = pd.DataFrame({"mean": [1.0]})
    write_evaluation(tmp_path, {"first": rows, "second": rows}, {"schema": SCHEMA})
    write_evaluation(tmp_path, {"first": rows}, {"schema": SCHEMA})
    assert sorted(file.name for file in (tmp_path / "evaluation").iterdir()) == ["first.parquet", "manifest.json"]


@each("name, row, says", [
    ("retrieval", {"direction": "i2t", "query": "a"}, r"retrieval\.parquet must have the columns"),
    ("rows", {"source": "a"}, r"rows\.parquet must have the columns"),
    ("more", {"direction": 3}, r"column direction of .*more\.parquet must be of texts"),
    ("more", {"mean": "high"}, r"column mean of .*more\.parquet must be of numbers"),
    ("more", {"direction": None, "mean": 1.0}, r"column direction of .* must have a value in every row"),
])  # fmt: skip
def test_frames_of_other_columns_are_refused(name: str, row: dict[str, object], says: str, tmp_path: Path) -> None:
    """Each ended a report in a traceback, though its SHA-256 was right."""
    write_evaluation(tmp_path, {name: pd.DataFrame([row])}, {"schema": SCHEMA})
    with pytest.raises(InputError, match=says):
        read_frame(tmp_path, name)
