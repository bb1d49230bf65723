"""Does lint count every planted fault, and no other?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.datasets.lint import row_hashes
from lossscope.datasets.lint.suite import CHECKS, LintReport, lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.rows.row_block import RowBlock, TextLists
from lossscope.errors import InputError
from lossscope.visible_text import show_text
from tests.each import each

Row = tuple[str, list[str], list[str]]
IDS = [check.ID for check in CHECKS]


@dataclass(frozen=True)
class ListedRows:
    """Rows of a list, in blocks of three."""

    rows: Sequence[Row]
    size: int = 0

    def blocks(self, only: Any = None) -> Iterator[RowBlock]:
        for number, start in enumerate(range(0, len(self.rows), 3)):
            queries, positives, negatives = zip(*self.rows[start : start + 3], strict=True)
            lists = [
                TextLists([t for row_texts in part for t in row_texts], list(map(len, part)))
                for part in (positives, negatives)
            ]
            if only is None or (0, number) in only:
                lines = range(start + 1, start + 1 + len(queries))
                yield RowBlock((0, number), "list", lines, list(queries), None, *lists)


def write(file: Path, rows: Sequence[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def write_faults(folder: Path, rows: int = 3000) -> tuple[str, dict[str, int]]:
    """Write a file of rows with faults far apart; return it with the number of each fault."""
    clean: list[dict[str, Any]] = [
        {"query": f"Query {n}", "positive": f"The answer {n}.", "negatives": [f"Wrong {n}", f"wronger {n}"]}
        for n in range(rows)
    ]
    for n in range(5, rows, 100):
        clean[n]["negatives"][1] = f"the  ANSWER {n}."
    for n in range(11, rows, 150):
        clean[n]["negatives"][0] = f"The answer {n + 1}."
        clean[n]["query"] = f"Query {n + 1}?"
    for n in range(79, rows, 350):
        clean[n]["positive"] = f"The answer {n} is what a longer passage states."
        clean[n]["negatives"][0] = f"Passage: {clean[n]['positive']}"
    for n in range(23, rows, 200):
        clean[n]["negatives"].append(" \n")
    for n in range(37, rows, 250):
        del clean[n]["positive"]
    for n in range(41, rows, 300):
        clean[n]["positive"] = "word " * 513
    copies = [{**clean[n], "query": f"QUERY\t{n}", "negatives": []} for n in range(53, rows, 120)]
    numbers = {
        "positive-as-negative": len(range(5, rows, 100)),
        "other-positive-as-negative": len(range(11, rows, 150)),
        "empty-text": len(range(23, rows, 200)),
        "no-positive": len(range(37, rows, 250)),
        "long-text": len(range(41, rows, 300)),
        "duplicates": len(copies),
        "near-copies": len(range(79, rows, 350)),
    }
    return write(folder / "train.jsonl", [*clean, *copies]), numbers


def counts(report: LintReport) -> dict[str, int]:
    return {finding.id: finding.count for finding in report.findings}


def test_planted_faults_are_all_counted(tmp_path: Path) -> None:
    file, numbers = write_faults(tmp_path)
    report = lint(lint_sources(file))
    assert counts(report) == numbers
    assert report.rows == 3000 + numbers["duplicates"]
    assert (report.queries, report.checked) == (3000, tuple(id for id in IDS if id != "split-leak"))
    for finding in report.findings:
        assert finding.share == finding.count / report.rows
        assert len(finding.examples) == 5 and all(row.file == file and row.split is None for row in finding.examples)
    shown = {finding.id: (finding.examples[0].line, finding.examples[0].text) for finding in report.findings}
    assert shown == {
        "positive-as-negative": (6, "the ANSWER 5."),
        "other-positive-as-negative": (12, "The answer 12."),
        "empty-text": (24, "negative 3 of 'Query 23'"),
        "no-positive": (38, "Query 37"),
        "long-text": (42, "513 words: word" + " word" * 12 + " w..."),
        "duplicates": (3001, "QUERY 53"),
        "near-copies": (80, "Passage: The answer 79 is what a longer passage states."),
    }


def test_a_clean_file_has_no_finding(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.jsonl", [{"query": f"q{n}", "positive": f"p{n}", "negative": f"n{n}"} for n in range(50)]
    )
    report = lint(lint_sources(file))
    assert (report.findings, report.documents, report.reaches("warning")) == ((), 50, False)


def test_a_positive_of_the_query_in_another_row_is_its_own(tmp_path: Path) -> None:
    rows = [{"query": "q", "positive": "a", "negative": "b"}, {"query": "Q", "positive": "B"}]
    assert counts(lint(lint_sources(write(tmp_path / "a.jsonl", rows)))) == {"positive-as-negative": 1}


def test_the_same_row_with_other_negatives_is_a_duplicate(tmp_path: Path) -> None:
    rows = [
        {"query": "q", "positives": ["a", "b"], "negative": "x"},
        {"query": "q", "positives": ["B", "a"], "negative": "y"},
        {"query": "q", "positives": ["a"]},
        {"query": "q", "positives": ["a", "a"]},
        {"query": "q", "positives": []},
        {"query": "q", "positives": [""]},
    ]
    assert counts(lint(lint_sources(write(tmp_path / "a.jsonl", rows)))) == {
        "duplicates": 1,
        "no-positive": 1,
        "empty-text": 1,
    }


def test_rows_of_an_earlier_split_leak(tmp_path: Path) -> None:
    train = write(
        tmp_path / "train.jsonl", [{"query": f"q{n}", "positive": f"p{n}", "negative": f"n{n}"} for n in range(9)]
    )
    test = write(
        tmp_path / "test.jsonl",
        [
            {"query": "Q3", "positive": "new"},
            {"query": "new", "positives": ["x", "P4"]},
            {"query": "p5", "positive": "q5"},
            {"query": "x", "positive": "n5", "negative": "p6"},
        ],
    )
    report = lint(lint_sources(test), lint_sources(train))
    assert (counts(report), report.rows) == ({"split-leak": 2}, 4)
    assert [(row.line, row.text) for row in report.findings[0].examples] == [(1, "Q3"), (2, "P4")]
    whole = lint(lint_sources(f"texts:file={train},test={test}"))
    assert (counts(whole), whole.rows) == ({"split-leak": 2}, 13)
    assert {row.split for row in whole.findings[0].examples} == {"test"}


SENTENCE = "a sentence of fifty letters that is not a title now"
texts = st.sampled_from([
    "a", "A", "b", " c\n", "é", "e\u0301", "", "  ", "d d d d", "d  D\td", "\u00df", "SS", "x\0y", "a?", "?",
    "word " * 6, "word " * 6 + "!", "Title: " + "word " * 6, SENTENCE, SENTENCE + " end", "no, " + SENTENCE,
    SENTENCE[2:], "x" * 60,
])  # fmt: skip
rows = st.lists(st.tuples(texts, st.lists(texts, max_size=3), st.lists(texts, max_size=4)), max_size=12)


@given(st.lists(rows, min_size=1, max_size=3).filter(any), st.integers(1, 4))
def test_counts_are_those_of_the_oracle(splits: list[list[Row]], max_words: int) -> None:
    from tests.conftest import _loaded

    sources = {f"split {number}": ListedRows(split_rows) for number, split_rows in enumerate(splits)}
    report = lint(sources, max_words=max_words)
    assert counts(report) == _loaded("lint").counts(splits, max_words)
    assert report.rows == sum(map(len, splits))
    for finding in report.findings:
        assert len(finding.examples) == min(5, finding.count)


def test_many_negatives_are_looked_at_in_parts(
    monkeypatch: pytest.MonkeyPatch, oracle: Callable[[str], ModuleType]
) -> None:
    monkeypatch.setattr(row_hashes, "PART", 4)
    planted_rows = [(f"q{n}", [f"p{n}"], [f"p{m}" for m in range(n % 7)]) for n in range(50)]
    assert counts(lint({"a": ListedRows(planted_rows)})) == oracle("lint").counts([planted_rows], 512)


def test_examples_steer_no_terminal(tmp_path: Path) -> None:
    rows = [{"query": "\x1b[31mred\u202e" + "x" * 500, "positives": []}]
    (finding,) = lint(lint_sources(write(tmp_path / "a.jsonl", rows))).findings
    text = finding.examples[0].text
    assert text == show_text(text) and len(text) < 120 and text.startswith(r"\x1b[31mred\u202e")


def test_progress_is_of_the_bytes_of_all_files(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", [{"query": f"{name}{n}", "positive": "p" * 1000} for n in range(2000)])
    told: list[tuple[str, int, int]] = []
    lint(lint_sources(str(tmp_path)), progress=lambda *words: told.append(words))
    done = [count for _, count, _ in told]
    assert done == sorted(done) and (done[-1], told[-1][2]) == (3, 3)


@each("target, says", [
    ("scenes:train=3,val=2,test=2", "split 'train' must be of two texts, such as queries and documents; it is not"),
    ("{folder}/empty.jsonl", r"empty\.jsonl must have rows; there are none"),
    ("{folder}/none.jsonl", r"none\.jsonl must exist"),
    ("{folder}/bad.jsonl", r"line 2 of .*bad\.jsonl must be whole JSON"),
    ("texts:fil=x", "did you mean 'file'"),
    ("text:file=x", "data set must be one of .*; got 'text'; did you mean 'texts'"),
    ("s3://bucket/a.jsonl", "s3:// needs s3fs, which is not: pip install s3fs"),
])  # fmt: skip
def test_what_cannot_be_looked_at(target: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "bad.jsonl").write_text('{"query": "q"}\nno JSON\n')
    with pytest.raises(InputError, match=says):
        lint(lint_sources(target.format(folder=tmp_path)))


def test_limits_and_columns(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"title": "one two three", "body": "p"}])
    assert counts(lint(lint_sources(file, "query=title,positive=body"), max_words=2)) == {"long-text": 1}
    assert not lint(lint_sources(file, "query=title,positive=body"), max_words=3).findings
    with pytest.raises(InputError, match="max_words must be at least 1; got 0"):
        lint(lint_sources(file, "query=title"), max_words=0)
    with pytest.raises(InputError, match="columns must stand in the spec"):
        lint_sources("texts:file=a.jsonl", "query=title")
