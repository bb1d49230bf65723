"""`lossscope data lint`: the document, the lines, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import Result

from lossscope.datasets.lint.suite import CHECKS, MAX_WORDS
from tests.command_line import lossscope
from tests.datasets.lint.test_suite import write_faults

COPIES = '{"query": "q", "positive": "p"}\n' * 2


def lint(*words: str) -> Result:
    return lossscope("data", "lint", *words)


def test_the_document_has_every_finding(tmp_path: Path) -> None:
    file, numbers = write_faults(tmp_path)
    result = lint(file, "--format", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["schema"]) == (0, "lossscope.lint/1")
    assert {finding["id"]: finding["count"] for finding in document["findings"]} == numbers
    assert document["rows"] == 3000 + numbers["duplicates"]
    assert set(document["checked"]) == {check.ID for check in CHECKS} - {"split-leak"}
    for finding in document["findings"]:
        assert list(finding) == ["id", "severity", "count", "share", "examples"]
        assert finding["share"] == finding["count"] / document["rows"]
        assert all(set(row) == {"file", "line", "text"} for row in finding["examples"])


def test_lines_say_what_where_and_what_to_do() -> None:
    Path("a.jsonl").write_text(COPIES + '{"query": "r", "positives": []}\n')
    text = lint("a.jsonl").stdout
    assert text.startswith("a.jsonl: 3 rows with 2 different queries and 1 positives\n")
    assert "error    no-positive: 1 row, 33.333%. Leave these rows out" in text
    assert "\n         a.jsonl, line 3: r\n" in text
    assert text.index("no-positive") < text.index("duplicates")
    assert "None of: positive-as-negative, empty-text, short-text, near-duplicates, near-copies," in text


@pytest.mark.parametrize(
    ("content", "level", "code"),
    [
        (COPIES, None, 0),
        (COPIES, "error", 0),
        (COPIES, "warning", 3),
        ('{"query": "q"}\n', "error", 3),
        ('{"query": "q"}\n', "warning", 3),
        ('{"query": "q", "positive": "p"}\n', "warning", 0),
    ],
)
def test_the_exit_code_is_3_where_it_is_asked_for(content: str, level: str | None, code: int) -> None:
    Path("a.jsonl").write_text(content)
    assert lint("a.jsonl", *(["--fail-on", level] if level else []), "--format", "json").exit_code == code


def test_rows_of_the_training_data_leak() -> None:
    Path("train.jsonl").write_text('{"query": "q", "positive": "p"}\n')
    Path("test.jsonl").write_text('{"query": "Q", "positive": "r"}\n{"query": "s", "positive": "t"}\n')
    document = json.loads(lint("test.jsonl", "--against", "train.jsonl", "--format", "json").stdout)
    assert [(finding["id"], finding["count"], finding["share"]) for finding in document["findings"]] == [
        ("split-leak", 1, 0.5)
    ]
    assert document["rows"] == 2
    both = json.loads(
        lint("test.jsonl", "--against", "train.jsonl", "--against", "test.jsonl", "--format", "json").stdout
    )
    assert [finding["count"] for finding in both["findings"]] == [2]


def test_columns_and_words_may_be_others() -> None:
    Path("a.jsonl").write_text('{"title": "one two", "body": "p"}\n')
    result = lint("a.jsonl", "--columns", "query=title,positive=body", "--max-words", "1", "--format", "json")
    assert [finding["id"] for finding in json.loads(result.stdout)["findings"]] == ["long-text"]
    assert f"[default: {MAX_WORDS}]" in " ".join(lint("--help").stdout.split())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"query": "q"}\nno JSON\n', "Error: line 2 of a.jsonl must be whole JSON"),
        ('{"query": "q", "positive": 7}\n', "Error: 'positive' of line 1 of a.jsonl must be a text or a list of texts"),
        ("", "Error: a.jsonl must have rows; there are none"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_message(content: str, says: str) -> None:
    Path("a.jsonl").write_text(content)
    result = lint("a.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(says) and result.stderr.count("\n") == 1


def test_a_data_set_of_passages_is_looked_at() -> None:
    document = json.loads(lint("passages:train=60,val=20,test=20", "--format", "json").stdout)
    assert document["rows"] == 100


def test_what_was_not_compared_is_a_note() -> None:
    text = "the people of this town have lived beside the river for more than a hundred years"
    rows = [json.dumps({"query": f"q{n}", "positive": f"In {n} words: {n} said that {text}"}) for n in range(40)]
    Path("a.jsonl").write_text("\n".join(rows) + "\n")
    (note,) = json.loads(lint("a.jsonl", "--format", "json").stdout)["notes"]
    assert note.startswith("near-duplicates: 40 positives share their beginning or end with more than 31 others")
    assert "note     near-duplicates: 40 positives share" in lint("a.jsonl").stdout
