"""Does every command that does not train read a single file whole, and say in its first line what it read?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lossscope.core.request import Request
from lossscope.datasets.base import Split
from lossscope.datasets.texts import TextRows
from lossscope.io.frame_summary import read_measurement
from lossscope.registry import build
from lossscope.sources.base import read_source
from tests.command_line import lossscope
from tests.each import each
from tests.sources.text_folders import text_encoder, texts_of

N = 90
SPEC = "texts:file=rows.jsonl"
COUNTED = "--objective ntxent --batch-size 16"


@pytest.fixture(autouse=True)
def _files(_in_tmp_path: None) -> None:
    queries, documents = texts_of("train")
    rows = [{"query": f"{queries[k % 24]} {k}?", "positive": f"{documents[k % 18]} {k}"} for k in range(N)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def model() -> str:
    """A folder of a text encoder."""
    text_encoder(Path("model"))
    return "model"


def first_line(*words: str) -> str:
    """Return the beginning of the output, folded lines joined."""
    result = lossscope(*words)
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.partition("\n\n")[0].split())


@each("command", [
    f"cocos model --data {SPEC} {COUNTED}",
    f"probe similarity model --data {SPEC} {COUNTED}",
    f"eval model --data {SPEC}",
    f"diff model model --data {SPEC} {COUNTED}",
    f"doctor model --data {SPEC}",
    f"audit model --data {SPEC} --batch-size 16 --sheet 10 --out audit",
])  # fmt: skip
def test_a_single_file_is_read_whole(command: str, model: str) -> None:
    if not command.startswith("audit"):
        assert f"all {N} rows of rows.jsonl" in first_line(*command.split(), "--quiet")
        return
    lossscope(*command.split(), "--quiet")
    document = json.loads(Path("audit/audit.json").read_text())
    assert (document["items"][0], document["name"]) == (N, f"model, all {N} rows of rows.jsonl")


@each("more, split", [(",test_share=0.2", "test"), (",val_share=0.2", "test"), ("", "val")])
def test_a_part_that_is_asked_for_is_named_as_one(more: str, split: str, model: str) -> None:
    rows = len(build("datasets", SPEC + more).split(split).relations.positives)
    typed = ["--split", split] if split == "val" else []
    line = first_line("eval", model, "--data", SPEC + more, *typed)
    assert f"{rows} of {N} rows of rows.jsonl, its split {split}" in line and 0 < rows < N


def test_files_of_splits_are_read_whole_each(model: str) -> None:
    Path("test.jsonl").write_text("".join(Path("rows.jsonl").read_text().splitlines(keepends=True)[:30]))
    spec = f"{SPEC},test=test.jsonl"
    assert "all 30 rows of test.jsonl" in first_line("eval", model, "--data", spec)
    assert f"all {N} rows of rows.jsonl" in first_line("cocos", model, "--data", spec, *COUNTED.split())


def test_a_training_says_what_it_holds_out_and_its_checkpoint_keeps_that() -> None:
    trained = lossscope(*f"train --data {SPEC} --encoder biencoder:dim=8 --epochs 1 --batch-size 16".split(),
                        "--objective", "ntxent", "--out", "run")  # fmt: skip
    assert trained.exit_code == 0, trained.stderr
    rows = {name: len(TextRows("rows.jsonl").split(name).relations.positives) for name in ("train", "val", "test")}
    parts = {name: f"{number} of {N} rows of rows.jsonl, its split {name}" for name, number in rows.items()}
    said = f"Note: training on {parts['train']}; validating on {parts['val']}."
    assert " ".join(trained.stderr.split()).startswith(said) and sum(rows.values()) == N
    started = json.loads(Path("run/events.jsonl").read_text().splitlines()[0])
    assert started["notices"][0] == said.removeprefix("Note: ").removesuffix(".")
    for typed in ([], ["--data", SPEC]):
        assert parts["train"] in first_line("cocos", "run", *typed)
        assert parts["test"] in first_line("eval", "run", *typed)
    Path("other.jsonl").write_text(Path("rows.jsonl").read_text())
    assert f"all {N} rows of other.jsonl" in first_line("eval", "run", "--data", "texts:file=other.jsonl")


def test_rows_json_and_csv_have_what_was_used(model: str) -> None:
    words = ("eval", model, "--data", SPEC)
    document: dict[str, Any] = json.loads(lossscope(*words, "--format", "json").stdout)
    assert {row["used"] for row in document["rows"]} == {f"all {N} rows of rows.jsonl"}
    assert document["command"]["split"] == "all"
    assert "used" in lossscope(*words, "--format", "csv").stdout.splitlines()[0].split(",")


def test_frames_keep_what_was_used(model: str) -> None:
    counted = first_line("cocos", model, "--data", SPEC, *COUNTED.split(), "--out", "frame")
    assert f"all {N} rows of rows.jsonl" in counted
    assert set(read_measurement("frame").rows["used"]) == {f"all {N} rows of rows.jsonl"}


def test_python_reads_a_single_file_whole(model: str) -> None:
    embedded = read_source(model, Request(data=SPEC))
    assert (embedded.split, embedded.used, len(embedded.image_ids)) == ("all", f"all {N} rows of rows.jsonl", N)


def test_a_saved_dataset_of_one_split_is_read_whole(model: str) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets writes the folder")
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    datasets.Dataset.from_list(rows).save_to_disk("saved")
    assert f"all {N} rows of saved" in first_line("eval", model, "--data", "saved:root=saved")


def test_a_single_caption_file_is_read_whole(tmp_path: Path) -> None:
    images = [{"id": k, "file_name": f"{k}.png"} for k in range(9)]
    captions = [{"id": k, "image_id": k // 2, "caption": f"a picture of {k}"} for k in range(18)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images, "annotations": captions}))
    for image in images:
        (tmp_path / str(image["file_name"])).touch()
    data = build("datasets", f"coco:root={tmp_path},file=captions.json,folder=.")
    split: Split = data.split(Request(usual_split="test").split_of(data))
    assert (split.name, len(split.image_ids)) == ("all", 9) and split.used.startswith("all 9 images of")


def test_the_record_of_compare_has_the_split_that_was_read(model: str) -> None:
    """It stated the usual split, test, where all rows of a file were read."""
    text_encoder(Path("other"))
    result = lossscope("compare", model, "other", "--data", SPEC, "--format", "json")
    assert json.loads(result.stdout)["command"]["split"] == "all", result.stderr
