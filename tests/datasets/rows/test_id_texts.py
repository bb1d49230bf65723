"""Do rows of ids, as msmarco-hard-negatives has them, get the texts of a corpus and of a file of queries?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lossscope.datasets.base import Split, Texts
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.texts import TextRows
from lossscope.errors import InputError
from tests.each import each

SYSTEMS = {"bm25": [3, 2], "minilm": [{"pid": 4, "ce-score": 1.5}, {"pid": 3, "ce-score": 0.5}]}
ROWS: list[dict[str, Any]] = [{"qid": 100, "pos": [1], "neg": SYSTEMS}, {"qid": 101, "pos": [2], "neg": {"bm25": [1]}}]


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, suffix: str = "tsv") -> dict[str, str]:
    """Write the rows packed, and the texts of documents and queries."""
    with gzip.open(folder / "rows.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    texts = {"corpus": {n: f"passage {n}" for n in range(6)}, "queries": {100 + n: f"query {n}" for n in range(3)}}
    for name, by_id in texts.items():
        lines = [
            f"{id}\t{text}" if suffix == "tsv" else json.dumps({"_id": str(id), "text": text})
            for id, text in by_id.items()
        ]
        (folder / f"{name}.{suffix}").write_text("\n".join(lines) + "\n")
    return {"file": str(folder / "rows.jsonl.gz"), **{name: str(folder / f"{name}.{suffix}") for name in texts}}


def whole(**options: Any) -> Split:
    return TextRows(val_share=0, test_share=0, **options).split("train")


@each("suffix", ["tsv", "jsonl"])
def test_ids_get_their_texts_and_negatives_of_all_systems_are_joined(suffix: str, tmp_path: Path) -> None:
    split = whole(**write(tmp_path, suffix=suffix))
    assert isinstance(split.images, Texts)
    assert (list(split.images.texts), split.image_ids) == (["query 0", "query 1"], ["100", "101"])
    assert split.captions == ["passage 1", "passage 3", "passage 2", "passage 4"]
    assert split.caption_ids == ["1", "3", "2", "4"]
    assert split.relations.positives.tolist() == [[0, 0], [1, 2]]
    assert split.relations.negatives is not None
    assert split.relations.negatives.tolist() == [[1, 2, 3], [0, -1, -1]]
    assert "has lists of several systems, such as bm25, minilm: negatives are those of all" in split.notices[0]


def test_the_first_negatives_are_the_same_as_of_all(tmp_path: Path) -> None:
    rows = [{"qid": 100, "pos": [1], "neg": [1, 2, 3, 4]}]
    lists = []
    for most in (2, 0):
        split = whole(**write(tmp_path, rows), negatives=most)
        assert split.relations.negatives is not None
        lists.append([split.captions[row] for row in split.relations.negatives[0]])
    assert lists[0] == lists[1][:2] == ["passage 2", "passage 3"]


def test_queries_may_be_texts(tmp_path: Path) -> None:
    files = write(tmp_path, [{"query": "q", "positive_document_ids": ["1"], "negative_document_ids": ["2"]}])
    split = whole(file=files["file"], corpus=files["corpus"])
    assert isinstance(split.images, Texts)
    assert (list(split.images.texts), split.captions) == (["q"], ["passage 1", "passage 2"])


def test_a_title_of_the_passages_of_dpr_stands_before_the_text(tmp_path: Path) -> None:
    files = write(tmp_path, [{"qid": 100, "pos": [1], "neg": []}])
    Path(files["corpus"]).write_text("id\ttext\ttitle\n1\tA novel.\tEmma\n")
    assert whole(**files).captions == ["Emma A novel."]


@each("row, says", [
    ({"qid": 100, "pos": [9]}, r"'pos' of line 1 of .*rows\.jsonl\.gz must be of .*corpus\.tsv; it has no '9'"),
    ({"qid": 9, "pos": [1]}, r"'qid' of line 1 of .* must be of .*queries\.tsv; it has no '9'"),
    ({"qid": 100, "pos": [1.5]}, r"'pos' of line 1 of .* must be ids; got 1\.5"),
    ({"qid": 100, "pos": [1], "neg": {"bm25": [{"score": 1}]}}, "'neg' of line 1 of .* must be ids; got"),
    ({"pos": [1]}, "must have a column qid or query_id for queries="),
])  # fmt: skip
def test_an_id_without_a_text_is_named(row: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        whole(**write(tmp_path, [row]))


@each("text, says", [
    ("1\ta\n1\tb\n", "ids of .*corpus.tsv must be unique; line 2 has '1' again"),
    ("1\ta\tb\n", "line 1 of .*corpus.tsv must be an id, a tab and a text; got"),
])  # fmt: skip
def test_a_corpus_that_is_damaged_is_named(text: str, says: str, tmp_path: Path) -> None:
    files = write(tmp_path, [{"qid": 100, "pos": [1]}])
    Path(files["corpus"]).write_text(text)
    with pytest.raises(InputError, match=says):
        whole(**files)


def test_ids_without_their_files_are_refused_with_the_options_to_type(tmp_path: Path) -> None:
    files, options = write(tmp_path), r"texts:file=\.\.\.,corpus=collection\.tsv,queries=queries\.tsv"
    with pytest.raises(InputError, match=options):
        whole(file=files["file"])
    with pytest.raises(InputError, match=rf"'pos' of line 1 of .* must be a text .* got \[1\].*{options}"):
        whole(**{**write(tmp_path, [{"query": "q", "pos": [1]}]), "corpus": None, "queries": None})
    with pytest.raises(InputError, match="texts:queries=FILE needs the documents, too: corpus=FILE"):
        TextRows(files["file"], queries=files["queries"])


def test_lint_reads_them_twice(tmp_path: Path) -> None:
    files = write(tmp_path, [{"qid": 100, "pos": [1], "neg": [1, 2]}])
    report = lint(lint_sources("texts:" + ",".join(f"{name}={file}" for name, file in files.items())))
    assert report.findings[0].id == "positive-as-negative" and report.findings[0].examples[0].text
