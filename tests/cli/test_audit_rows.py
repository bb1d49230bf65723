"""Does `lossscope audit train.jsonl` take all rows of the file as the data, and must a model have the same ids?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.audit.steps.inputs import with_rows
from lossscope.audit.steps.options import AuditOptions
from lossscope.datasets.texts import TextRows
from tests.command_line import lossscope, message
from tests.each import each

N = 30
OPTIONS = "--batch-size 6 --sheet 10 --shown 5 --quiet"
ROWS = [
    {"id": f"row-{k}", "query": f"where is thing {k}?", "positive": f"Thing {k} is near place {k // 3}."}
    for k in range(N)
]


@pytest.fixture(autouse=True)
def _files(_in_tmp_path: None) -> None:
    for name, rows in (("train.jsonl", ROWS), ("other.jsonl", ROWS[:12]), ("my, rows.jsonl", ROWS)):
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [",".join(row.values()) for row in ROWS]
    Path("train.csv").write_text("\n".join(["id,query,positive", *lines]) + "\n")


def audit(*words: str) -> dict[str, Any]:
    """Return the document of an audit, from its file."""
    result = lossscope("audit", *words, *OPTIONS.split(), "--out", "out")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(Path("out/audit.json").read_text())
    return document


def write_dump(name: str, ids: list[str], change: Callable[[list[str]], list[str]] = list) -> None:
    random = np.random.default_rng(0)
    queries = random.normal(size=(len(ids), 6))
    split = TextRows("train.jsonl").split("all")
    np.savez(
        name, queries=queries, documents=queries + random.normal(size=queries.shape),
        positives=split.relations.positives,
        query_id=np.array(change(ids)), document_id=np.array(split.caption_ids),
    )  # fmt: skip


def test_a_file_is_audited_whole_as_its_data_with_split_all() -> None:
    found = audit("train.jsonl")
    assert found == audit("--data", "texts:file=train.jsonl", "--split", "all")
    assert found["items"] == [N, N]


@each("file, data", [
    ("train.jsonl", "texts:file=train.jsonl"),
    ("train.csv", "texts:file=train.csv"),
    ("my, rows.jsonl", 'texts:file="my, rows.jsonl"'),
    ("texts:file=train.jsonl", "texts:file=train.jsonl"),
    ("texts:file=train.jsonl,negatives=1", "texts:file=train.jsonl,negatives=1"),
])  # fmt: skip
def test_a_file_of_any_name_or_format_stands_for_its_data(file: str, data: str) -> None:
    options = AuditOptions.of(batch_size=6)
    assert with_rows([file], options) == ([], AuditOptions.of(data, batch_size=6))
    typed = AuditOptions.of(batch_size=6, split="val")
    assert with_rows([file], typed) == ([], AuditOptions.of(data, batch_size=6, split="val"))


def test_a_split_that_is_typed_is_taken() -> None:
    rows = TextRows("train.csv")
    for name in ("train", "val"):
        expected = len(rows.split(name).image_ids)
        assert audit("train.csv", "--split", name, "--batch-size", "2")["items"][0] == expected < N


def test_files_that_are_the_splits_have_no_split_of_all_and_train_is_audited() -> None:
    spec = "texts:file=other.jsonl,val=train.jsonl"
    assert audit(spec)["items"][0] == 12
    assert audit(spec, "--split", "val")["items"][0] == N


@each("words, other", [
    (("train.jsonl", "other.jsonl"), "train.jsonl and other.jsonl"),
    (("train.jsonl", "passages"), "train.jsonl and passages"),
    (("train.jsonl", "--data", "passages"), "train.jsonl and --data passages"),
    (("train.jsonl", "dump.npz", "--data", "texts:file=train.jsonl"), "train.jsonl and --data texts:file=train.jsonl"),
])  # fmt: skip
def test_two_data_sets_are_refused(words: tuple[str, ...], other: str) -> None:
    write_dump("dump.npz", [row["id"] for row in ROWS])
    result = lossscope("audit", *words, "--out", "out")
    assert result.exit_code == 1
    assert f"an audit must be of one data set; got {other}. Leave one of them out" in message(result)
    assert not Path("out/audit.json").exists()


def test_a_model_and_a_file_are_audited_together() -> None:
    write_dump("dump.npz", [row["id"] for row in ROWS])
    found = audit("train.jsonl", "dump.npz")
    assert found["items"] == [N, N]
    assert {"similarity", "text_direct", "text_names"} <= set(found["signals"])
    assert found == audit("dump.npz", "--data", "texts:file=train.jsonl", "--split", "all")


@each("change, says", [
    (lambda ids: [*ids[:7], "mine", *ids[8:]], "item 7 of its first side is 'mine', and the audit's 'row-7'"),
    (lambda ids: ids[::-1], f"item 0 of its first side is 'row-{N - 1}', and the audit's 'row-0', in another order"),
    (lambda ids: ["9", *ids[1:]], "item 0 of its first side is '9', and the audit's 'row-0'"),
])  # fmt: skip
def test_ids_of_a_model_that_differ_from_those_of_the_data_are_shown(
    change: Callable[[list[str]], list[str]], says: str
) -> None:
    write_dump("dump.npz", [row["id"] for row in ROWS], change)
    result = lossscope("audit dump.npz train.jsonl --out out")
    assert result.exit_code == 1
    assert f"must be of the items of the audit; {says}. Take its own split" in message(result)
    assert "or write the ids of the data into the dump" in message(result)


def test_a_dump_of_more_or_fewer_items_than_the_data_shows_the_first_that_differs() -> None:
    """The message had the numbers of items, and no id of either side."""
    ids = [row["id"] for row in ROWS]
    for name, more, says in (
        ("few.npz", ids[:-1], f"has {N - 1} items, the audit's {N}; item {N - 1} of its first side is missing"),
        ("rows.npz", list(map(str, range(N - 1))), f"{N}; item 0 of its first side is '0', and the audit's 'row-0'"),
        ("many.npz", [*ids, "more"], f"item {N} of its first side is 'more', and the audit's missing"),
    ):
        vectors = np.random.default_rng(0).normal(size=(len(more), 6))
        np.savez(name, queries=vectors, documents=vectors, query_id=np.array(more))
        shown = message(lossscope(f"audit {name} train.jsonl --out out"))
        assert "must be of the items of the audit; its first side has" in shown and says in shown, shown


@each("sides", [("query_id",), ("document_id",), ("query_id", "document_id")])
def test_rows_of_a_dump_without_ids_are_those_of_the_data(sides: Sequence[str]) -> None:
    """They were refused: item 0 of its first side is '0'. eval takes numbers of rows in judgements."""
    write_dump("dump.npz", [row["id"] for row in ROWS])
    expected = audit("train.jsonl", "dump.npz")
    arrays = dict(np.load("dump.npz"))
    np.savez("dump.npz", **{name: array for name, array in arrays.items() if name not in sides})
    result = lossscope("audit", "train.jsonl", "dump.npz", *OPTIONS.removesuffix("--quiet").split(), "--out", "out")
    assert result.exit_code == 0, result.stderr
    found = json.loads(Path("out/audit.json").read_text())
    assert {name for name in found if found[name] != expected[name]} <= {"notices", "sources", "fingerprint"}
    named = " and ".join("first" if side == "query_id" else "second" for side in sides)
    says = f"dump.npz has no ids on its {named} side: assuming that its rows, {N} and {N}, are those of the data"
    assert says in message(result)


def test_a_file_that_is_not_there_is_said() -> None:
    result = lossscope("audit nothing.jsonl --out out")
    assert result.exit_code == 1
    assert "nothing.jsonl" in message(result)


def test_neither_a_source_nor_rows_is_said_with_what_to_type() -> None:
    result = lossscope("audit --out out")
    assert result.exit_code == 2
    assert "audit needs a SOURCE, or a file with texts: lossscope audit train.jsonl --out audit" in message(result)


def test_an_audit_says_how_the_rows_were_read() -> None:
    """A cut of scores decides what is a positive: neither `audit` nor `train` said so."""
    rows = [f"where is thing {k // 2}?,thing {k} is near place {k // 3},{4.5 - 3 * (k % 2)}" for k in range(2 * N)]
    Path("sts.csv").write_text("\n".join(["sentence1,sentence2,score", *rows]) + "\n")
    words = ("--data", "texts:file=sts.csv", "--encoder", "biencoder:dim=8,words=8", "--objective", "infonce:tau=0.05")
    for result in (
        lossscope("audit", "sts.csv", "--batch-size", "6", "--out", "out"),
        lossscope("train", *words, "--epochs", "1", "--batch-size", "8", "--min-count", "1", "--out", "run"),
    ):
        assert result.exit_code == 0, result.stderr
        assert "'score' of sts.csv is 1.5..4.5: rows with 4 or more are positives (30 of 60)" in message(result)
