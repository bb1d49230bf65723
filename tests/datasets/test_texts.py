"""Do rows of texts become a split of queries and documents, each once, and does a notice count merged ones?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.datasets.base import Dataset, Split, Texts
from lossscope.datasets.texts import TextRows
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from tests.each import each

ROWS = [
    {"query": "q1", "positive": "p1", "negatives": ["n1", "p2"]},
    {"query": "q2", "positives": ["p2", "p1"], "negatives": ["n1"]},
    {"query": "q1", "positive": "p3", "negatives": ["n2", "n1", "p1"]},
]


def write(folder: Path, *rows: dict[str, Any], name: str = "train.jsonl") -> str:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / name)


def whole(file: str, **options: Any) -> Split:
    return TextRows(file, val_share=0, test_share=0, **options).split("train")


def test_equal_texts_are_one_query_and_one_document(tmp_path: Path) -> None:
    split = whole(write(tmp_path, *ROWS))
    assert isinstance(split.images, Texts)
    assert (list(split.images.texts), split.captions) == (["q1", "q2"], ["p1", "n1", "p2", "p3", "n2"])
    assert split.relations.positives.tolist() == [[0, 0], [1, 2], [1, 0], [0, 3]]
    assert split.relations.negatives is not None
    assert split.relations.negatives.tolist() == [[1, 2, 4], [1, -1, -1]]
    assert (split.relations.sides, split.caption_image) == (QUERY_DOCUMENT, None)
    assert (split.image_ids[1], split.caption_ids[4]) == ("train-q00001", "train-d00004")
    assert split.notices == (
        "1 of 3 rows repeat a query, and were joined with its first row",
        "5 distinct documents in 10 positives and negatives",
        "positives of 1 queries are among their negatives, and left out there",
    )


def test_ids_keep_equal_queries_apart_and_join_others(tmp_path: Path) -> None:
    split = whole(write(tmp_path, *({**row, "id": key} for row, key in zip(ROWS, (7, "b", "c"), strict=True))))
    assert isinstance(split.images, Texts)
    assert (list(split.images.texts), split.image_ids) == (["q1", "q2", "q1"], ["7", "b", "c"])
    with pytest.raises(
        InputError, match=r"queries of one id must be equal; line 2 of .* has another text than line 1 of"
    ):
        whole(write(tmp_path, *({**row, "id": 1} for row in ROWS)))


@each("name", ["val", "test"])
def test_an_empty_name_of_a_split_is_not_the_training_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"texts:{name} must name files of rows; got ''. Leave it out"):
        TextRows(write(tmp_path, *ROWS), **{name: ""})  # type: ignore[arg-type]


def test_both_shares_are_in_the_message_that_they_leave_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must leave some for train; got 0\.4 and 0\.7: lower one"):
        TextRows(write(tmp_path, *ROWS), val_share=0.4, test_share=0.7)


def test_the_first_negatives_are_kept(tmp_path: Path) -> None:
    negatives = whole(write(tmp_path, *ROWS), negatives=1).relations.negatives
    assert negatives is not None and negatives.tolist() == [[1], [1]]
    assert whole(write(tmp_path, {"query": "q", "positive": "p"})).relations.negatives is None


def test_pairs_alone_are_as_captions_of_images_are(tmp_path: Path) -> None:
    split = whole(write(tmp_path, *({"query": f"q{n}", "positives": [f"p{n}", f"r{n}"]} for n in range(3))))
    assert split.relations.has_owners
    assert split.relations.caption_image.tolist() == [0, 0, 1, 1, 2, 2]
    assert not split.notices


def test_a_share_is_held_out_and_equal_queries_stay_together(tmp_path: Path) -> None:
    rows = [{"query": f"{'Q' if n % 2 else 'q'}{n // 2}", "positive": f"p{n}"} for n in range(2000)]
    data = TextRows(write(tmp_path, *rows), val_share=0.2)
    assert data.splits() == ("train", "val", "test", "all")
    texts = {name: {text.lower() for text in data.split(name).images.texts} for name in data.splits()}  # type: ignore[attr-defined]
    assert not texts["train"] & texts["val"] and not texts["train"] & texts["test"] and not texts["val"] & texts["test"]
    assert texts["train"] | texts["val"] | texts["test"] == texts["all"]
    assert 150 < len(texts["val"]) < 250 and 60 < len(texts["test"]) < 140
    assert TextRows(data.file, val_share=0.2, seed=1).split("val").fingerprint != data.split("val").fingerprint
    assert TextRows(data.file, val_share=0, test_share=0).splits() == ("train",)


def test_files_of_other_splits(tmp_path: Path) -> None:
    train, val = write(tmp_path, *ROWS), write(tmp_path, *ROWS[1:], name="val.jsonl")
    data = TextRows(train, val=val)
    assert isinstance(data, Dataset)
    assert data.splits() == ("train", "val")
    assert (len(data.split("train").captions), len(data.split("val").images)) == (5, 2)
    with pytest.raises(InputError, match="split of texts must be one of train, val; got 'test'"):
        data.split("test")


def test_a_url_is_read_as_a_path_is(tmp_path: Path) -> None:
    file = write(tmp_path, *ROWS)
    fsspec.filesystem("memory").pipe("/rows/train.jsonl", Path(file).read_bytes())
    assert whole("memory://rows/train.jsonl").fingerprint == whole(file).fingerprint


def test_the_spec_says_what_is_read(tmp_path: Path) -> None:
    data = build("datasets", f'texts:file={write(tmp_path, *ROWS)},columns="query=query",val-share=0')
    assert spec_of(build("datasets", spec_of(data))) == spec_of(data)
    assert data.splits() == ("train", "test", "all")


def test_the_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    first = whole(write(tmp_path, *ROWS)).fingerprint
    assert whole(write(tmp_path, *ROWS, name="copy.jsonl")).fingerprint == first
    for changed in (ROWS[::-1], [*ROWS[:2], {**ROWS[2], "positive": "P3"}], [*ROWS[:2], {**ROWS[2], "negatives": []}]):
        assert whole(write(tmp_path, *changed)).fingerprint != first


@each("rows, says", [
    (
        [ROWS[0], {"query": "q9", "negative": "n"}],
        r"line 2 of .*train\.jsonl must have a positive; its query, 'q9', has",
    ),
    ([], r"train\.jsonl must have at least one row of the split 'train'; there is none"),
    ([{**ROWS[0], "id": 1}, ROWS[1]], "'id' of line 2 of .*train.jsonl must be a text or a whole number"),
])  # fmt: skip
def test_rows_that_are_no_split(rows: list[dict[str, Any]], says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        whole(write(tmp_path, *rows))


def test_ids_in_some_blocks_only_are_refused(tmp_path: Path) -> None:
    rows = [{"query": f"q{n}", "positive": "p" * 100} for n in range(6000)]
    with pytest.raises(
        InputError, match=r"(rows must all have an id, or none; line|'id' of line) \d+ of .*train.jsonl"
    ):
        whole(write(tmp_path, *rows, {"query": "q", "positive": "p", "id": 5}))


def test_a_query_without_positives_may_have_some_in_another_row(tmp_path: Path) -> None:
    split = whole(write(tmp_path, {"query": "q", "negative": "n"}, {"query": "q", "positive": "p"}))
    assert split.relations.positives.tolist() == [[0, 1]]


def test_empty_texts_are_said(tmp_path: Path) -> None:
    assert (
        "1 queries or documents are empty texts"
        in whole(write(tmp_path, {"query": "q", "positives": [" ", "p"]})).notices
    )


def test_a_table_of_negatives_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.datasets.rows.text_pairs._MOST_NEGATIVES", 5)
    with pytest.raises(
        InputError, match=r"negatives of 2 queries must be at most 2 each .* one has 3: write negatives=K"
    ):
        whole(write(tmp_path, *ROWS))
    assert whole(write(tmp_path, *ROWS), negatives=2).relations.negatives is not None
