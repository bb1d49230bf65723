"""Is a folder of BEIR read with its judgements, and a run as mined negatives; is every unknown id named by its line?"""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from lossscope.datasets.base import Dataset, Split, Texts
from lossscope.datasets.beir import Beir
from lossscope.errors import InputError
from tests.each import each

QRELS = {"train": "q1\td1\t1\nq1\td2\t0\nq2\td3\t2\n", "dev": "q3\td1\t1\n", "test": "q2\td4\t1\nq4\td2\t0\n"}
RUN = 'q1 Q0 d1 1 9 x\nq1 Q0 d4 3 7 x\nq1 Q0 "d\\u00205" 2 8 x\nq2 Q0 d3 1 5 x\nq3 Q0 d2 1 5 x\n'


def write(folder: Path) -> Path:
    documents = [
        {"_id": "d1", "title": "A title", "text": "one"},
        {"_id": "d2", "title": "", "text": "two"},
        {"_id": "d3", "text": "three", "metadata": {"url": "x"}},
        {"_id": "d4", "title": None, "text": "two"},
        {"_id": "d 5", "text": "five"},
        {"_id": "d6", "text": "six"},
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    queries = [{"_id": f"q{n}", "text": f"query {n}", "metadata": {}} for n in range(1, 6)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (folder / "qrels").mkdir()
    for name, lines in QRELS.items():
        (folder / "qrels" / f"{name}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    (folder / "bm25.run").write_text(RUN)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(write(tmp_path))


def texts_of(split: Split) -> tuple[list[str], list[str]]:
    assert isinstance(split.images, Texts)
    return list(split.images.texts), split.captions


def test_judged_queries_and_documents(root: str) -> None:
    data = Beir(root)
    assert isinstance(data, Dataset)
    assert data.splits() == ("train", "val", "test")
    split = data.split("train")
    assert texts_of(split) == (["query 1", "query 2"], ["A title one", "two", "three"])
    assert (split.image_ids, split.caption_ids) == (["q1", "q2"], ["d1", "d2", "d3"])
    assert split.relations.positives.tolist() == [[0, 0], [1, 2]]
    assert split.relations.negatives is None
    assert split.notices == ("3 queries are not judged in this split, and left out",)
    assert texts_of(data.split("val")) == texts_of(data.split("dev")) == (["query 3"], ["A title one"])


def test_queries_without_a_positive_are_left_out_and_counted(root: str) -> None:
    split = Beir(root, merge=False).split("test")
    assert (texts_of(split)[0], split.caption_ids) == (["query 2"], ["d2", "d4"])
    assert "1 judged queries have no positive, and are left out" in split.notices


def test_documents_of_equal_text_are_one(root: str) -> None:
    merged, apart = Beir(root, corpus="all").split("test"), Beir(root, corpus="all", merge=False).split("test")
    assert (merged.caption_ids, apart.caption_ids) == (
        ["d1", "d2", "d3", "d 5", "d6"],
        ["d1", "d2", "d3", "d4", "d 5", "d6"],
    )
    assert "1 documents repeat a text, and are one with it" in merged.notices
    assert (merged.relations.positives.tolist(), apart.relations.positives.tolist()) == ([[0, 1]], [[0, 3]])


@each("top, expected", [(5, [[2, 1], [-1, -1]]), (1, [[2], [-1]])])
def test_a_run_names_mined_negatives_by_score(tmp_path: Path, top: int, expected: list[list[int]]) -> None:
    root = write(tmp_path)
    split = Beir(str(root), run=f"{root}/bm25.run", top=top, corpus="judged").split("train")
    assert split.caption_ids == ["d1", "d2", "d3", "d 5"]
    assert split.relations.negatives is not None
    names = [
        [split.caption_ids[row] if row >= 0 else "-" for row in rows] for rows in split.relations.negatives.tolist()
    ]
    assert names == [["d 5", "d2"][:top], ["-", "-"][:top]]
    assert "1 queries have no mined negative" in split.notices


def test_a_run_of_each_split(root: str) -> None:
    (Path(root) / "val.run").write_text("q3 Q0 d6 1 5 x\n")
    split = Beir(root, run=f"{root}/{{split}}.run").split("dev")
    assert split.caption_ids == ["d1", "d6"]


def test_a_url_is_read_as_a_folder_is(root: str) -> None:
    system = fsspec.filesystem("memory")
    for path in Path(root).rglob("*.*"):
        system.pipe(f"/beir/{path.relative_to(root)}", path.read_bytes())
    remote = Beir("memory://beir", run="memory://beir/bm25.run")
    assert remote.splits() == ("train", "val", "test")
    assert remote.split("train").fingerprint == Beir(root, run=f"{root}/bm25.run").split("train").fingerprint


@each("file, content", [
    ("bm25.run", ""), ("bm25.run", "\n \n\r\n"), ("run.json", "{}"), ("run.json", '{"q1": {}}'), ("bm25.run", "\ufeff"),
    ("qrels/train.tsv", ""), ("qrels/train.tsv", "\n\n"), ("qrels/train.tsv", "query-id\tcorpus-id\tscore\n"),
])  # fmt: skip
def test_a_run_and_judgements_without_a_line_are_refused(root: str, file: str, content: str) -> None:
    """An empty run gave a split without mined negatives, as if no run had been named."""
    Path(root, file).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=rf"{file} must have (ranked documents|judgements); it has none"):
        Beir(root, run=f"{root}/{'run.json' if file == 'run.json' else 'bm25.run'}").split("train")
    Path(root, "qrels/train.tsv").write_text(QRELS["train"])


@each("file, more, says", [
    ("qrels/train.tsv", "q1\td9\t1\n", r"line 5 of .*train\.tsv must name a document of corpus\.jsonl; it has no 'd9'"),
    ("qrels/train.tsv", "q9\td1\t1\n", r"line 5 of .*train\.tsv must name a query of queries\.jsonl; it has no 'q9'"),
    ("qrels/train.tsv", "q1\td1\t1\n", r"train\.tsv must judge a pair once; line 5 has 'q1' and 'd1' again, as line 2"),
    ("bm25.run", "q1 Q0 d9 9 1 x\n", r"line 6 of .*bm25\.run must name a document of corpus\.jsonl; it has no 'd9'"),
    ("bm25.run", "q9 Q0 d1 9 1 x\n", r"line 6 of .*bm25\.run must name a query of queries\.jsonl; it has no 'q9'"),
    ("bm25.run", "q1 Q0 d1 9 1 x\n", r"bm25\.run must rank a document once per query; line 6 has 'd1' again for 'q1'"),
    (
        "corpus.jsonl",
        '{"_id": "d1", "text": "x"}\n',
        r"ids of .*corpus\.jsonl must be unique; line 7 of .* has 'd1' again",
    ),
    ("corpus.jsonl", '{"_id": "d7"}\n', r"'text' of line 7 of .*corpus\.jsonl must be text; got None"),
    ("corpus.jsonl", '{"text": "x"}\n', "line 7 of .*corpus.jsonl must have the key '_id'"),
    ("corpus.jsonl", "no JSON\n", r"line 7 of .*corpus\.jsonl must be whole JSON"),
    ("queries.jsonl", '{"_id": "q7", "text": 5}\n', r"'text' of line 6 of .*queries\.jsonl must be text; got 5"),
])  # fmt: skip
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, file: str, more: str, says: str) -> None:
    root = str(write(tmp_path))
    with open(Path(root, file), "a") as lines:
        lines.write(more)
    with pytest.raises(InputError, match=says):
        Beir(root, run=f"{root}/bm25.run").split("train")


def test_what_is_not_there_is_named(root: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be one of train, val, test; got 'none'"):
        Beir(root).split("none")
    with pytest.raises(InputError, match=r"qrels/\*\.tsv \(none found\); got 'test'"):
        Beir(str(tmp_path / "nowhere")).split("test")
    (Path(root) / "qrels/test.tsv").write_text("q1\td1\t0\n")
    with pytest.raises(InputError, match="must name a positive; no score is above 0"):
        Beir(root).split("test")
    with pytest.raises(InputError, match="beir:top must be at least 1; got 0"):
        Beir(root, top=0)
