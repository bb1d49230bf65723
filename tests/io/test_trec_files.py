"""Are judgements and runs read as BEIR and TREC write them?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.io.trec_files import ScoredDocument, iter_judgements, iter_run
from tests.each import each


@each("text", [
    "query-id\tcorpus-id\tscore\nq 1\td1\t2\r\nq2\td2\t-1\n",
    "q 1\td1\t2\n\nq2\td2\t-1",
    "q 1\t0\td1\t2\nq2\tQ0\td2\t-1\n",
])  # fmt: skip
def test_judgements_of_three_and_four_columns(text: str, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(text)
    judged = list(iter_judgements(str(tmp_path / "test.tsv")))
    assert [(judgement.query, judgement.document, judgement.score) for judgement in judged] == [
        ("q 1", "d1", 2),
        ("q2", "d2", -1),
    ]
    assert judged[0] == ScoredDocument(2 if text.startswith("query-id") else 1, "q 1", "d1", 2)


@each("line, says", [
    ("q1\td1", "line 2 of .*test.tsv must be query-id, corpus-id, score, with tabs between; got"),
    ("q1\td1\thigh", "score in line 2 of .*test.tsv must be a whole number; got 'high'"),
    ("q1\td1\t1e300", "score in line 2"),
    ("q1\td1\t" + "9" * 5000, "score in line 2"),
])  # fmt: skip
def test_a_line_of_judgements_that_cannot_be_read_is_named(line: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{line}\n")
    with pytest.raises(InputError, match=says):
        list(iter_judgements(str(tmp_path / "test.tsv")))


def test_a_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 12.5 bm25\nq1\tQ0\td2\t2\t-1e-3\tbm25\n")
    assert list(iter_run(str(tmp_path / "a.run"))) == [
        ScoredDocument(1, "q1", "d1", 12.5),
        ScoredDocument(2, "q1", "d2", -0.001),
    ]


@each("line, says", [
    ("q1 d1 1", "line 1 of .*a.run must be query Q0 document rank score tag, with blanks between; got"),
    ("q1 Q0 d1 1 nan x", "score in line 1 of .*a.run must be a number; got 'nan'"),
    ("q1 Q0 d1 1 high x", "score in line 1"),
])  # fmt: skip
def test_a_line_of_a_run_that_cannot_be_read_is_named(line: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(line)
    with pytest.raises(InputError, match=says):
        list(iter_run(str(tmp_path / "a.run")))
