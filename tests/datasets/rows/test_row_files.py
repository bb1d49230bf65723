"""Do rows of every format become the same texts, and is every value of another kind named by its line?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.datasets.rows.column_names import ColumnNames
from lossscope.datasets.rows.row_files import RowFiles
from lossscope.errors import InputError

Row = tuple[str, list[str], list[str]]


def rows_of(text: str, columns: str = "") -> list[Row]:
    return [
        row
        for block in RowFiles.parse(text, ColumnNames.parse(columns)).blocks()
        for row in zip(block.queries, block.positives, block.negatives, strict=True)
    ]


def jsonl(folder: Path, *rows: dict[str, Any], name: str = "a.jsonl") -> str:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / name)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"query": "q", "positive": "p", "negative": "n"}, ("q", ["p"], ["n"])),
        ({"query": "q", "positives": ["p", "r"], "negatives": ["n"]}, ("q", ["p", "r"], ["n"])),
        ({"anchor": "q", "positive": "p", "negative_2": "m", "negative_1": "n"}, ("q", ["p"], ["n", "m"])),
        ({"question": "q", "answer": "p"}, ("q", ["p"], [])),
        ({"query": "q", "pos": ["p"], "neg": ["n", "m"]}, ("q", ["p"], ["n", "m"])),
        ({"query": "q", "positive": "p", "positives": ["r"], "pos": "x"}, ("q", ["p", "r"], [])),
        ({"query": "q", "anchor": "x", "positive": None, "negatives": None}, ("q", [], [])),
        (
            {"query": "q", "positive": "p", "negative_10": ["c"], "negative_9": None, "negative_2": "a"},
            ("q", ["p"], ["a", "c"]),
        ),
    ],
)
def test_columns_by_their_usual_names(row: dict[str, Any], expected: Row, tmp_path: Path) -> None:
    assert rows_of(jsonl(tmp_path, row)) == [expected]


def test_columns_by_other_names(tmp_path: Path) -> None:
    file = jsonl(tmp_path, {"title": "t", "body": "b", "hard_1": "x", "hard_2": "y", "query": "no", "positive": "no"})
    assert rows_of(file, "query=title, positive=body,negative=hard") == [("t", ["b"], ["x", "y"])]


@pytest.mark.parametrize("text", ["query", "query=", "title=query", "query=a,query=b", "query=" + "x" * 2000])
def test_names_of_columns_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="columns must be"):
        ColumnNames.parse(text)


def test_the_first_row_with_a_value_decides_which_column_it_is(tmp_path: Path) -> None:
    """Not the block that it is in: rows of one file are read alike wherever a block ends."""
    rows = (
        [{"query": "q", "pos": None}] * 3000 + [{"query": "q", "pos": "p"}] + [{"query": "q", "positive": "x"}] * 3000
    )
    read = rows_of(jsonl(tmp_path, *rows))
    assert [positives for _, positives, _ in read] == [[]] * 3000 + [["p"]] + [[]] * 3000


def test_csv_and_parquet_have_the_rows_of_json_lines(tmp_path: Path) -> None:
    rows = [{"query": f"q{n}", "positive": f"p{n}", "negatives": [f"n{n}", "[x"][: n % 3]} for n in range(3000)]
    expected = rows_of(jsonl(tmp_path, *rows))
    pd.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    as_text = [{**row, "negatives": json.dumps(row["negatives"]) if row["negatives"] else ""} for row in rows]
    pd.DataFrame(as_text).to_csv(tmp_path / "a.csv", index=False)
    assert rows_of(str(tmp_path / "a.parquet")) == rows_of(str(tmp_path / "a.csv")) == expected


def test_csv_values_may_be_json_lists_and_brackets_alone_are_text(tmp_path: Path) -> None:
    pd.DataFrame({"query": ["[1]", ""], "positive": ["[1] is a note", '["a", "b"]']}).to_csv(
        tmp_path / "a.csv", index=False
    )
    assert rows_of(str(tmp_path / "a.csv")) == [("[1]", ["[1] is a note"], []), ("", ["a", "b"], [])]


def test_several_files_are_read_in_their_order(tmp_path: Path) -> None:
    jsonl(tmp_path, {"query": "b", "positive": "p"}, name="b.jsonl")
    jsonl(tmp_path, {"anchor": "a", "positive": "p"}, name="a.jsonl")
    jsonl(tmp_path, {"query": "c", "positive": "p"}, name="a,b.jsonl")
    (tmp_path / "README.md").write_text("no rows")
    assert [query for query, _, _ in rows_of(f"{tmp_path}/b.jsonl,{tmp_path}/a.jsonl")] == ["b", "a"]
    assert [query for query, _, _ in rows_of(f"{tmp_path}/a,b.jsonl")] == ["c"]
    assert [query for query, _, _ in rows_of(f"{tmp_path}/?.jsonl")] == ["a", "b"]
    assert [query for query, _, _ in rows_of(str(tmp_path))] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"positive": "p"}, r"line 3 of .*a\.jsonl must have a text as its query, 'query'; got None"),
        ({"query": 5, "positive": "p"}, "line 3 of .* must have a text as its query, 'query'; got 5"),
        ({"query": "q", "positive": 5}, "'positive' of line 3 of .* must be a text or a list of texts; got 5"),
        ({"query": "q", "positives": ["p", None]}, "'positives' of line 3 of .* must be a text or a list of texts"),
        ({"query": "q", "negative": {"text": "n"}}, "'negative' of line 3 of .* must be a text or a list of texts"),
        ({"query": "q", "negatives": [["n"]]}, "'negatives' of line 3 of .* must be a text or a list of texts"),
        ({"query": "q", "negatives": ["n"] * 70_000}, "line 3 of .* must have at most 65536 negatives; got 70000"),
        (
            {"query": "q", "positive": "p", "id": None},
            "'id' of line 3 of .* must be a text or a whole number, .* got None",
        ),
        (
            {"query": "q", "positive": "p", "id": True},
            "'id' of line 3 of .* must be a text or a whole number, .* got True",
        ),
    ],
)
def test_a_value_of_another_kind_is_named(row: dict[str, Any], says: str, tmp_path: Path) -> None:
    good = {"query": "a", "positive": "b", **({"id": 1} if "id" in row else {})}
    with pytest.raises(InputError, match=says):
        rows_of(jsonl(tmp_path, good, good, row, good))


def test_a_csv_cell_that_pandas_wrote_as_a_list_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"query": ["q"], "positives": [["a", "b"]]}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=r"'positives' of line 2 of .*a\.csv must be a text or a JSON list of texts"):
        rows_of(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{folder}/none.jsonl", r"none\.jsonl must exist; there is no such file"),
        ("{folder}/a.txt", r"suffix of .*a\.txt must be one of .jsonl, .*; got .txt"),
        ("{folder}", "suffix of .* must be one of .jsonl, .*; got .txt"),
        (",", "file must name files of rows; got ','"),
    ],
)
def test_files_that_are_no_rows(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no rows")
    with pytest.raises(InputError, match=says):
        rows_of(text.format(folder=tmp_path))
