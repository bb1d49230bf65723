"""Do JSON lines, CSV, parquet and Arrow files of the same rows give the same columns, and name a fault's position?"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock, Keep, Only, join_blocks
from lossscope.io.csv_rows import iter_csv_rows
from lossscope.io.csv_tables import read_csv
from lossscope.io.json_lines import iter_json_lines
from lossscope.io.parquet_rows import iter_parquet_rows
from lossscope.io.saved_datasets import iter_saved_rows
from tests.each import each

Reader = Callable[[str, Keep, Only], Iterator[ColumnBlock]]
ROWS = [{"query": f"q{row} ä", "positive": f'p{row},\n"x"', "other": "-"} for row in range(5000)]


def keep(name: str) -> bool:
    return name != "other"


def write_all(folder: Path) -> dict[str, tuple[Reader, Path]]:
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with open(folder / "a.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, folder / "a.parquet", write_page_checksum=True)
    with pa.OSFile(str(folder / "a.arrow"), "w") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=1500)
    return {
        "j": (iter_json_lines, folder / "a.jsonl"),
        "c": (iter_csv_rows, folder / "a.csv"),
        "p": (iter_parquet_rows, folder / "a.parquet"),
        "a": (iter_saved_rows, folder / "a.arrow"),
    }


@each("kind", "jcpa")
def test_every_format_gives_the_rows(kind: str, tmp_path: Path) -> None:
    reader, path = write_all(tmp_path)[kind]
    blocks = list(reader(str(path), keep, None))
    rows = [
        dict(zip(block.columns, values, strict=True))
        for block in blocks
        for values in zip(*block.columns.values(), strict=True)
    ]
    assert rows == [{"positive": row["positive"], "query": row["query"]} for row in ROWS]
    assert [block.number for block in blocks] == list(range(len(blocks))) and len(blocks) > 1
    lines = [line for block in blocks for line in block.lines]
    assert lines == ([2 + 2 * row for row in range(5000)] if kind == "c" else list(range(1, 5001)))


@each("kind", "jcpa")
def test_blocks_that_are_not_wanted_are_passed_over(kind: str, tmp_path: Path) -> None:
    reader, path = write_all(tmp_path)[kind]
    blocks = list(reader(str(path), keep, None))
    assert list(reader(str(path), keep, {1})) == blocks[1:2]


def test_a_table_is_the_concatenation_of_its_blocks(tmp_path: Path) -> None:
    _, path = write_all(tmp_path)["c"]
    whole = join_blocks(iter_csv_rows(str(path), lambda name: True))
    assert whole is not None and whole.lines == [2 + 2 * row for row in range(5000)]
    pd.testing.assert_frame_equal(read_csv(path), pd.DataFrame(whole.columns))
    assert join_blocks([]) is None


def jsonl(folder: Path, *lines: str) -> Callable[[], Any]:
    (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return lambda: list(iter_json_lines(str(folder / "a.jsonl"), keep, None))


@each("line, says", [
    ("no JSON", r"line 3 of .*a\.jsonl must be whole JSON; got Expecting value at column 1"),
    ('{"query": "q"', "line 3 of .* must be whole JSON; got Expecting ',' delimiter at column 14"),
    ('["q", "p"]', "line 3 of .* must be an object; got"),
    ('{"query": 1} {}', "line 3 of .* must be whole JSON; got Extra data"),
    ('{"query": "a", "query": "b"}', "line 3 of .* must give each key of an object once; got 'query' twice"),
    (r'{"query": "\ud800"}', "texts of line 3 of .* must be of letters of Unicode; got .*half of a pair"),
    (r'{"query": "\\ud83d\ude00"}', "texts of line 3 of .* must be of letters of Unicode"),
    (r'{"query": ["\ude00\ud83d"]}', "texts of line 3 of .* must be of letters of Unicode"),
    ("[" * 100_000, "line 3 of .* must be JSON of ordinary depth"),
    ('{"query": ' + "9" * 5000 + "}", "line 3 of .* must be JSON of ordinary numbers"),
])  # fmt: skip
def test_a_line_that_is_no_object_is_named(line: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        jsonl(tmp_path, '{"query": "a"}', "", line, '{"query": "b"}')()


def test_empty_lines_and_carriage_returns_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"query": "a"}\r\n\r\n  \n{"query": "\\ud83d\\ude00"}\r\n')
    (block,) = iter_json_lines(str(tmp_path / "a.jsonl"), keep)
    assert (list(block.lines), block.columns) == ([1, 4], {"query": ["a", "\U0001f600"]})


def test_a_row_may_lack_a_key_that_others_have(tmp_path: Path) -> None:
    (block,) = jsonl(tmp_path, '{"query": "a", "neg": null}', '{"pos": ["x"]}')()
    assert block.columns == {"neg": [None, None], "pos": [None, ["x"]], "query": ["a", None]}


@each("text, says", [
    ("", "a.csv must be a whole CSV table; it has no header"),
    ("query,positive\na\n", "rows of .*a.csv must have 2 values, as its header; got 1 in line 2"),
    ("query,query\na,b\n", "columns of .* must have different names; got 'query' twice"),
    (
        'query,positive\na,"b\nc',
        "a.csv must be a whole CSV table; got unexpected end of data in the row that begins in",
    ),
    ('query,positive\na,"b"c\n', "in the row that begins in line 2"),
    (",".join(f"c{n}" for n in range(1001)), "must have at most 1000 columns to read; got 1001"),
])  # fmt: skip
def test_a_csv_file_that_is_no_table_is_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=says):
        list(iter_csv_rows(str(tmp_path / "a.csv"), keep))


def test_a_long_value_is_read_and_the_limit_of_the_process_is_left(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("query,positive\na," + "x" * 200_000 + "\n")
    before = csv.field_size_limit()
    (block,) = iter_csv_rows(str(tmp_path / "a.csv"), keep)
    assert len(block.columns["positive"][0]) == 200_000
    assert csv.field_size_limit() == before


@each("kind", "pa", "cut", [0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(kind: str, cut: float, tmp_path: Path) -> None:
    reader, path = write_all(tmp_path)[kind]
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(InputError, match=rf"{path.name} must be a whole (parquet )?file"):
        list(reader(str(path), keep, None))


def test_an_arrow_file_that_ends_between_batches_is_refused(tmp_path: Path) -> None:
    reader, path = write_all(tmp_path)["a"]
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"a\.arrow must be a whole file .*; its end is missing"):
        list(reader(str(path), keep, None))


@each("column, says", [
    (pa.array([b"q"]), "column query of .* must be of texts, numbers, or lists of texts or of passages; got binary"),
    (pa.array([{"a": "b"}]), "must be of texts, numbers, or lists of texts or of passages; got struct"),
    (pa.array([[[1]]]), "must be of texts, numbers, or lists of texts or of passages; got list"),
    (pa.array([[{"a": ["b"]}]]), "must be of texts, numbers, or lists of texts or of passages; got list"),
    (pa.StringArray.from_buffers(1, *pa.array([b"\xff\xfe"]).buffers()[1:]), r"a\.arrow must be a whole file .*UTF8"),
])  # fmt: skip
def test_columns_of_other_types_are_refused(column: pa.Array, says: str, tmp_path: Path) -> None:
    table = pa.table({"query": column})
    with pa.OSFile(str(tmp_path / "a.arrow"), "w") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(InputError, match=says):
        list(iter_saved_rows(str(tmp_path / "a.arrow"), keep))


@each("column", [
    pa.array([["a", "b"], None, [], ["c", None]]),
    pa.array([["a", "b"], None, [], ["c", None]], pa.large_list(pa.large_string())),
    pa.array(["a", None, "", "b"]).dictionary_encode(),
    pa.array(["a", None, "", "b"], pa.string_view()),
    pa.array([None, 1, 2, 3]),
    pa.array([None, 1.5, 2.0, -3.0]),
    pa.array([[1, 0], None, [], [1]]),
    pa.array([[{"docid": "d", "text": "t"}], None, [], [{"docid": None, "text": "u"}]]),
    pa.nulls(4),
])  # fmt: skip
def test_columns_of_texts_are_python_values(column: pa.Array, tmp_path: Path) -> None:
    table = pa.table({"query": column})
    with pa.OSFile(str(tmp_path / "a.arrow"), "w") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    (block,) = iter_saved_rows(str(tmp_path / "a.arrow"), keep)
    assert block.columns["query"] == column.to_pylist()
