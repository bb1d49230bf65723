"""Do rows of every format become the same texts, and is every value of another kind named by its line?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.datasets.rows.column_names import ColumnNames
from lossscope.datasets.rows.row_files import RowFiles
from lossscope.datasets.texts import TextRows
from lossscope.errors import InputError
from lossscope.io import json_lines
from tests.each import each

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


@each("row, expected", [
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
])  # fmt: skip
def test_columns_by_their_usual_names(row: dict[str, Any], expected: Row, tmp_path: Path) -> None:
    assert rows_of(jsonl(tmp_path, row)) == [expected]


def test_columns_by_other_names(tmp_path: Path) -> None:
    file = jsonl(tmp_path, {"title": "t", "body": "b", "hard_1": "x", "hard_2": "y", "query": "no", "positive": "no"})
    assert rows_of(file, "query=title, positive=body,negative=hard") == [("t", ["b"], ["x", "y"])]


@each("text", ["query", "query=", "title=query", "query=a,query=b", "query=" + "x" * 2000])
def test_names_of_columns_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="columns must be"):
        ColumnNames.parse(text)


def test_the_first_row_with_a_value_decides_which_column_it_is(tmp_path: Path) -> None:
    """Rows of one file are read alike wherever a block ends."""
    rows = (
        [{"query": "q", "pos": None}] * 3000 + [{"query": "q", "pos": "p"}] + [{"query": "q", "positive": "x"}] * 3000
    )
    read = rows_of(jsonl(tmp_path, *rows))
    assert [positives for _, positives, _ in read] == [[]] * 3000 + [["p"]] + [[]] * 3000


def test_a_block_that_is_read_again_has_the_same_columns(tmp_path: Path) -> None:
    """The second pass of lint chose columns anew, by the first block that it read."""
    rows: list[dict[str, Any]] = [{"anchor": "q", "pos": "p"}] * 3000
    rows += [{"query": "x", "anchor": "q", "positive": "x", "pos": "p"}] * 3000
    files = RowFiles.parse(jsonl(tmp_path, *rows), ColumnNames())
    first = {block.key: block for block in files.blocks()}
    for key, block in first.items():
        (again,) = files.blocks({key})
        assert (again.queries, again.positives) == (block.queries, block.positives)


def test_columns_of_a_second_name_are_said_not_to_be_read(tmp_path: Path) -> None:
    """The columns were dropped without a word."""
    good = {"query": "q", "positive": "p", "positives": ["r"]}
    files = RowFiles.parse(jsonl(tmp_path, good, {**good, "pos": "x", "answer": "y", "anchor": "z"}), ColumnNames())
    (block,) = files.blocks()
    assert block.notices == (
        f"'anchor' of {tmp_path}/a.jsonl is not read: its query is 'query'; columns=query=NAME takes another",
        f"'pos', 'answer' of {tmp_path}/a.jsonl are not read: its positive is 'positive'; columns=positive=NAME takes "
        "another",
    )
    split = TextRows(str(tmp_path / "a.jsonl"), val_share=0, test_share=0).split("train")
    assert split.notices[:2] == block.notices
    (block,) = RowFiles.parse(jsonl(tmp_path, {**good, "pos": None}), ColumnNames()).blocks()
    assert block.notices == ()


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


@each("row, says", [
    ({"positive": "p"}, r"line 3 of .*a\.jsonl must have a text as its query, 'query'; got None"),
    ({"query": 5, "positive": "p"}, "line 3 of .* must have a text as its query, 'query'; got 5"),
    ({"query": "q", "positive": 5}, "'positive' of line 3 of .* must be a text or a list of texts; got 5"),
    ({"query": "q", "positives": ["p", None]}, "'positives' of line 3 of .* must be a text or a list of texts"),
    ({"query": "q", "negative": {"body": "n"}}, "'negative' of line 3 of .* must be passages of .* got {'body': 'n'}"),
    ({"query": "q", "negatives": [["n"]]}, "'negatives' of line 3 of .* must be a text or a list of texts"),
    ({"query": "q", "negatives": ["n"] * 70_000}, "line 3 of .* must have at most 65536 negatives; got 70000"),
    ({"query": "q", "positive": "p", "id": None}, "'id' of line 3 of .* must be a text or a whole number, .* got None"),
    ({"query": "q", "positive": "p", "id": True}, "'id' of line 3 of .* must be a text or a whole number, .* got True"),
])  # fmt: skip
def test_a_value_of_another_kind_is_named(row: dict[str, Any], says: str, tmp_path: Path) -> None:
    good = {"query": "a", "positive": "b", **({"id": 1} if "id" in row else {})}
    with pytest.raises(InputError, match=says):
        rows_of(jsonl(tmp_path, good, good, row, good))


def test_a_table_without_a_column_of_queries_is_told_both_ways_out(tmp_path: Path) -> None:
    """The message for a table of embeddings named a text in line 2, and columns that are "none that is known"."""
    pd.DataFrame({"a": [0.1], "b": [0.2]}).to_csv(tmp_path / "emb.csv", index=False)
    with pytest.raises(InputError, match=r"emb\.csv must have a column .* columns=query=NAME.*`lossscope cocos "):
        rows_of(str(tmp_path / "emb.csv"))


@each(
    "name",
    ["positive", "positives", "pos", "positive_1"],
    "cell",
    ["['a', 'b']", '["a", b]', '["a"', "['a' 'b']", '["a", 1]'],
)
def test_a_csv_cell_that_is_another_list_than_one_of_json_is_refused(tmp_path: Path, name: str, cell: str) -> None:
    """In columns whose name does not end in s, the list became one text."""
    pd.DataFrame({"query": ["q"], name: [cell]}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=rf"'{name}' of line 2 of .*a\.csv must be a text or a JSON list of texts"):
        rows_of(str(tmp_path / "a.csv"))


@each("name", ["positive", "positives"], "cell", ["[1]", "[sic] a text", "[a, b]", "[[1]]"])
def test_a_csv_cell_in_other_brackets_is_text_in_every_column(tmp_path: Path, name: str, cell: str) -> None:
    pd.DataFrame({"query": ["q"], name: [cell]}).to_csv(tmp_path / "a.csv", index=False)
    assert rows_of(str(tmp_path / "a.csv")) == [("q", [cell], [])]


@each("indent", [None, 1])
def test_a_file_of_one_json_array_is_read_entry_by_entry(indent: int | None, tmp_path: Path) -> None:
    """It was refused, though pandas and DPR write such files."""
    rows = [{"query": f"q{row}", "positive": "p"} for row in range(1200)]
    (tmp_path / "a.json").write_text(f"\n{json.dumps(rows, indent=indent)}\n")
    assert rows_of(f"{tmp_path}/a.json") == [(f"q{row}", ["p"], []) for row in range(1200)]
    (tmp_path / "a.json").write_text(json.dumps([*rows, "q"], indent=indent))
    with pytest.raises(InputError, match=r"row 1201 of .*a\.json must be an object; got 'q'"):
        rows_of(f"{tmp_path}/a.json")


def test_an_array_on_each_line_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('["q", "p"]\n["q2", "p2"]\n')
    with pytest.raises(InputError, match=r"""a\.jsonl must have a JSON object on each line, .*; got '\["q", "p"\]'"""):
        rows_of(f"{tmp_path}/a.jsonl")


def test_a_large_array_is_refused_with_the_line_that_makes_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "MAX_TEXT_BYTES", 30)
    (tmp_path / "a.json").write_text(json.dumps([{"query": "q", "positive": "p" * 30}]))
    with pytest.raises(InputError, match=r"jq -c '\.\[\]' .*a\.json > .*a\.jsonl writes one"):
        rows_of(f"{tmp_path}/a.json")


@each("text, says", [
    ("{folder}/none.jsonl", r"none\.jsonl must exist; there is no such file"),
    ("{folder}/a.txt", r"suffix of .*a\.txt must be one of .jsonl, .*; got .txt"),
    ("{folder}", "suffix of .* must be one of .jsonl, .*; got .txt"),
    (",", "file must name files of rows; got ','"),
])  # fmt: skip
def test_files_that_are_no_rows(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no rows")
    with pytest.raises(InputError, match=says):
        rows_of(text.format(folder=tmp_path))


def test_a_tsv_file_has_tabs_between_its_values(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('query\tpositive\tnegative\nq, "x"\tp\t["n", "m"]\n')
    assert rows_of(f"{tmp_path}/a.tsv") == [('q, "x"', ["p"], ["n", "m"])]


def test_quotes_that_are_letters_are_refused_with_lines_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GLUE's files have no quoting: a text may begin with a quote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text('query\tpositive\n"I am", he said\tx\n')
    with pytest.raises(InputError, match=r"a\.tsv must be a whole CSV table") as caught:
        rows_of("a.tsv")
    exec(str(caught.value).partition("in Python: ")[2], {})  # the message promises that it runs
    assert rows_of("a.jsonl") == [('"I am", he said', ["x"], [])]
