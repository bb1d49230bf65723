"""Are rows of Tevatron, DPR and FlagEmbedding read as these libraries write them?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.datasets.base import Split, Texts
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.texts import TextRows
from lossscope.errors import InputError
from tests.each import each

TEVATRON: list[dict[str, Any]] = [
    {
        "query_id": "1",
        "query": "who wrote Emma",
        "positive_passages": [{"docid": "d1", "title": "Emma", "text": "A novel by Austen."}],
        "negative_passages": [{"docid": "d2", "title": "", "text": "An actor."}],
    },
    {
        "query_id": "2",
        "query": "who acts",
        "positive_passages": [{"docid": "d2", "title": "", "text": "An actor."}],
        "negative_passages": [],
    },
]


def write(folder: Path, rows: list[dict[str, Any]], suffix: str = "jsonl") -> str:
    path = folder / f"train.{suffix}"
    if suffix == "parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif suffix == "json":
        path.write_text(json.dumps(rows, indent=4))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def whole(file: str, **options: Any) -> Split:
    return TextRows(file, val_share=0, test_share=0, **options).split("train")


@each("suffix", ["jsonl", "parquet", "json"])
def test_passages_of_tevatron_are_documents_with_their_ids_and_titles(suffix: str, tmp_path: Path) -> None:
    """Rows had no positive, as lossscope did not know the columns."""
    split = whole(write(tmp_path, TEVATRON, suffix))
    assert isinstance(split.images, Texts)
    assert (list(split.images.texts), split.image_ids) == (["who wrote Emma", "who acts"], ["1", "2"])
    assert split.captions == ["Emma A novel by Austen.", "An actor."]
    assert split.caption_ids == ["d1", "d2"]
    assert split.relations.positives.tolist() == [[0, 0], [1, 1]]
    assert split.relations.negatives is not None and split.relations.negatives.tolist() == [[1], [-1]]


def test_contexts_of_dpr_are_documents(tmp_path: Path) -> None:
    row = {
        "question": "who",
        "answers": ["Austen"],
        "positive_ctxs": [{"title": "Emma", "text": "A novel.", "passage_id": 7, "score": 1.5}],
        "negative_ctxs": [{"title": "X", "text": "x"}],
        "hard_negative_ctxs": [{"title": "Y", "text": "y", "psg_id": "8"}],
    }
    split = whole(write(tmp_path, [row], "json"))
    assert (split.captions, split.caption_ids) == (["Emma A novel.", "Y y"], ["7", "8"])
    assert any("'answers' of" in notice and "is not read" in notice for notice in split.notices)
    assert any("'negative_ctxs' of" in notice and "is not read" in notice for notice in split.notices)
    other = whole(write(tmp_path, [row], "json"), columns="negative=negative_ctxs")
    assert other.captions == ["Emma A novel.", "X x"]
    assert "1 of 2 documents have no id, so that ids are not kept" in other.notices


def test_documents_of_one_text_are_one_under_the_first_id(tmp_path: Path) -> None:
    twice = [{"docid": id, "title": "", "text": "same"} for id in ("a", "b")]
    split = whole(write(tmp_path, [{"query": "q", "positive_passages": twice}]))
    assert (split.captions, split.caption_ids) == (["same"], ["a"])
    assert "1 documents repeat a text, and are one with it, under its first id" in split.notices


@each("passage, says", [
    ({"docid": "d2", "text": "other"}, "documents of one id must be equal; line 3 of .* has another text"),
    ({"docid": "d3"}, r"'positive_passages' of line 3 of .* must be passages of .*; got \{'docid': 'd3'\}"),
    ({"docid": "d3", "text": 5}, "must be passages of"),
    ({"docid": "d3", "title": 5, "text": "t"}, "must be passages of"),
    ({"docid": ["d3"], "text": "t"}, "ids of 'positive_passages' of line 3 of .* must be texts or whole numbers"),
])  # fmt: skip
def test_a_damaged_passage_is_named(passage: dict[str, Any], says: str, tmp_path: Path) -> None:
    rows = [*TEVATRON, {"query_id": "3", "query": "q", "positive_passages": [passage]}]
    with pytest.raises(InputError, match=says):
        whole(write(tmp_path, rows))


def test_a_positive_of_flagembedding_that_is_a_text_is_told(tmp_path: Path) -> None:
    """FlagEmbedding takes a letter of such a text for a positive."""
    row = {"query": "q", "pos": "a text", "neg": ["n"], "prompt": "Find", "pos_scores": [1.0], "type": "normal"}
    file = write(tmp_path, [row, {**row, "query": "r", "pos": ["b text"]}])
    split = whole(file)
    assert split.captions == ["a text", "n", "b text"]
    assert f"'pos_scores', 'prompt', 'type' of {file} are not read" in split.notices
    notes = lint(lint_sources(file)).notes
    assert any(note.startswith(f"1 values of 'pos' or 'neg' in {file} are texts") for note in notes)
