"""Are CSV and parquet tables checked to be whole, rectangular, and of the types that their readers expect?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lossscope.errors import InputError
from lossscope.io.csv_tables import read_csv
from lossscope.io.frames import read_rows
from lossscope.io.parquet_tables import read_parquet
from tests.each import each


def write(path: Path, content: str) -> Path:
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    return path


def test_a_table_comes_back(tmp_path: Path) -> None:
    table = read_csv(write(tmp_path / "a.csv", 'a,b\n1,"x, y"\n2,\n'), {"a": "number", "b": "text", "c": "number"})
    assert table["a"].tolist() == [1, 2]
    assert table["b"].tolist()[0] == "x, y"


@each("texts, values", [
    (["1", "2"], [1, 2]),
    (["1", ""], [1.0, None]),
    (["0.30000000000000004", "-1e-7"], [0.1 + 0.2, -1e-7]),
    (["True", "False"], [True, False]),
    (["'=1+1", "-0.5"], ["=1+1", "-0.5"]),
    (["NA", "inf"], [None, float("inf")]),
])  # fmt: skip
def test_columns_have_types(texts: list[str], values: list[object], tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n" + "".join(f"{text},x\n" for text in texts))
    pd.testing.assert_series_equal(read_csv(path)["a"], pd.Series(values, name="a"))


@each("content, says", [
    ("a,b\n1,2\n3\n", "must have 2 values, as its header; got 1 in line 3"),
    ("a,b\n1,2,3\n", "must have 2 values, as its header; got 3 in line 2"),
    ("a,a\n1,2\n", "different names; got 'a' twice"),
    ("", "no header"),
    ("a,b\n1,\0\n", "NUL byte"),
    ("a,b\n1,\udcff\n", "UTF-8"),
    ('a,b\n1,"2\n', "whole CSV table"),
    ("a,b\nx,2\n", "column a of .* must be of numbers"),
    ("a,b\nTrue,2\n", "column a of .* must be of numbers"),
])  # fmt: skip
def test_a_table_that_is_not_whole_is_refused(content: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says) as problem:
        read_csv(write(tmp_path / "a.csv", content), {"a": "number"})
    assert "a.csv" in str(problem.value)


def test_the_last_line_of_a_growing_table_may_be_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n1,2\n3,0.5")
    assert read_csv(path, growing=True)["b"].tolist() == [2]
    assert read_csv(path)["b"].tolist() == [2, 0.5]


def test_parquet_comes_back_and_damage_is_named(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.parquet", pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    rows.to_parquet(path)
    pd.testing.assert_frame_equal(read_parquet(path, {"a": "number", "b": "text"}), rows)
    with pytest.raises(InputError, match=r"column b of .* must have a value in every row; row 1 has none"):
        read_parquet(path, complete=["b"])
    with pytest.raises(InputError, match=r"column a of .* must be of texts"):
        read_parquet(path, {"a": "text"})
    for content in (b"", b"text", path.read_bytes()[:-9]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a\.parquet must be a whole parquet file"):
            read_parquet(path)


def test_a_page_that_differs_from_its_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"a": [float(i) for i in range(100)]})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[content.index(pa.array([42.0]).buffers()[1].to_pybytes()[:8])] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.parquet must be a whole parquet file"):
        read_parquet(path)


def test_more_rows_than_a_file_can_hold_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, pa.schema([("a", pa.int8())])) as writer:
        for _ in range(100):
            writer.write_table(pa.table({"a": pa.nulls(1_000_000, pa.int8())}))
    with pytest.raises(InputError, match="must hold the rows that it states"):
        read_parquet(path)


@each("column", ["mean", "n", "eps"])
def test_summary_rows_of_other_types_are_refused(column: str, tmp_path: Path) -> None:
    pd.DataFrame({column: ["x"], "statistic": ["recall"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"column {column} of .*a\.parquet must be of numbers"):
        read_rows(tmp_path / "a.parquet")


def test_texts_of_parquet_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    """The texts were decoded only at their use, and raised ArrowException."""
    raw = pa.array([b"ok", b"\xff\xfe"])
    texts = pa.StringArray.from_buffers(2, raw.buffers()[1], raw.buffers()[2])
    pq.write_table(pa.table({"caption": texts}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"texts of column caption of .*a\.parquet must be UTF-8"):
        read_parquet(tmp_path / "a.parquet")
