"""Are frames written in whole parts, with the manifest of one command, and do means leave out undefined batches?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.files import fingerprint
from lossscope.io.frames import KEYS, SUMMARY, Frame, join, summarise, summary_document
from lossscope.io.manifests import read_manifest, write_manifest
from tests.each import each

COMMAND = {"name": "cocos", "source": "a.pt", "eps": [0.01], "shape": (1, 2)}


def rows(values: list[float], **changes: Any) -> pd.DataFrame:
    key = {
        "source": "a", "objective": "triplet", "direction": "i2t", "probe": "cocos", "convention": "corrected",
        "eps": 0.01, "batch_size": 4, "sampling": "pairs", "seed": 0, "weight_unit": "paper", "items": 4, "queries": 4,
    }  # fmt: skip
    records = [{**key, "batch": batch, "C_q": value, "statistics": "C_q"} for batch, value in enumerate(values)]
    return pd.DataFrame(records).assign(**changes)


def test_parts_come_back_in_order(tmp_path: Path) -> None:
    frame = Frame.open(tmp_path / "frame", COMMAND)
    frame.append(rows([1.0, 2.0]), "pairs-0", queries=pd.DataFrame({"q": [1]}))
    frame.append(rows([3.0]), "pairs-2")
    assert frame.read()["C_q"].tolist() == [1, 2, 3]
    assert frame.read("query")["q"].tolist() == [1]
    assert frame.keys() == {"pairs-0", "pairs-2"}
    manifest = frame.manifest()
    assert manifest["schema"] == "lossscope.frame/5"
    assert [(part["key"], part["rows"]) for part in manifest["parts"]] == [("pairs-0", 2), ("pairs-2", 1)]
    assert manifest["parts"][1]["part"] == fingerprint(frame.path / "part-00001.parquet")
    assert not manifest["done"]
    names = sorted(path.name for path in frame.path.iterdir())
    assert names == ["manifest.json", "part-00000.parquet", "part-00001.parquet", "query-00000.parquet"]


def test_each_part_states_the_version_that_computed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame.open(tmp_path / "frame", COMMAND)
    for number, version in enumerate(("0.0.8", "0.0.9", "0.0.8")):
        monkeypatch.setattr("lossscope.io.frames.own_version", lambda version=version: version)
        frame.append(rows([1.0]), f"pairs-{number}")
    assert frame.versions() == ("0.0.8", "0.0.9")
    manifest = read_manifest(frame.path / "manifest.json")
    write_manifest(frame.path / "manifest.json", {**manifest, "parts": [{**manifest["parts"][0], "version": 1}]})
    with pytest.raises(InputError, match="'version' of a part of"):
        frame.versions()


def test_an_empty_frame_has_no_rows(tmp_path: Path) -> None:
    assert Frame.open(tmp_path, COMMAND).read().empty


def test_the_same_command_resumes_and_another_is_refused(tmp_path: Path) -> None:
    Frame.open(tmp_path, COMMAND).append(rows([1.0]), "pairs-0")
    assert Frame.open(tmp_path, COMMAND).keys() == {"pairs-0"}
    with pytest.raises(InputError, match="holds the frame of another command; choose another --out"):
        Frame.open(tmp_path, {**COMMAND, "eps": [0.1]})


def test_a_finished_frame_is_marked_done(tmp_path: Path) -> None:
    frame = Frame.open(tmp_path, COMMAND)
    frame.finish(seconds=3)
    assert frame.manifest()["done"]
    assert frame.manifest()["seconds"] == 3


def test_folders_with_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match="must be empty or a frame; it holds other files"):
        Frame.open(tmp_path, COMMAND)
    with pytest.raises(InputError, match="must be a folder for the frame; it is a file"):
        Frame.open(tmp_path / "notes.txt", COMMAND)


@each("text, fragment", [
    ("", "must be whole JSON"),
    ('{"schema": "loss', "must be whole JSON"),
    ("[]", "must be an object"),
    ("{}", "must have the schema lossscope.frame/5; got None"),
    ('{"schema": "lossscope.frame/2"}', "got 'lossscope.frame/2'"),
    ('{"schema": "lossscope.frame/5"}', "must have the key 'command'"),
    ('{"schema": "lossscope.frame/5", "command": {}, "parts": [3]}', "a part of .* must be an object"),
    ('{"schema": "lossscope.frame/5", "command": {}, "parts": [{"key": "a", "rows": 1}]}', "the key 'part'"),
    ('{"schema": "lossscope.frame/4", "command": {}, "parts": [{"key": "a", "rows": -1}]}', "at least 0"),
    (
        '{"schema": "lossscope.frame/4", "command": {}, "parts": [{"key": "", "rows": 1}, {"key": "", "rows": 1}]}',
        "must have different keys",
    ),
])  # fmt: skip
def test_a_damaged_manifest_is_refused(text: str, fragment: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InputError, match=fragment):
        Frame.open(tmp_path, COMMAND)


def test_a_missing_or_damaged_part_is_refused_by_name(tmp_path: Path) -> None:
    frame = Frame.open(tmp_path, COMMAND)
    frame.append(rows([1.0]), "pairs-0")
    (tmp_path / "part-00000.parquet").write_bytes(b"junk")
    with pytest.raises(InputError, match=r"part-00000\.parquet must match its SHA-256"):
        frame.read()
    (tmp_path / "part-00000.parquet").unlink()
    with pytest.raises(InputError, match=r"part-00000\.parquet must exist"):
        frame.read()


def test_a_part_of_another_frame_is_refused(tmp_path: Path) -> None:
    frame = Frame.open(tmp_path / "a", COMMAND)
    frame.append(rows([1.0, 2.0]), "pairs-0", queries=rows([1.0]))
    other = Frame.open(tmp_path / "b", COMMAND)
    other.append(rows([1.0, 3.0]), "pairs-0", queries=rows([2.0]))
    for kind in ("part", "query"):
        name = f"{kind}-00000.parquet"
        (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
        with pytest.raises(InputError, match=f"{name} must match (its|the) SHA-256"):
            frame.read(kind)


@each("column, value", [("mean", "1.0"), ("source", 3), ("W_neg", [1.0]), ("curve", 1.0)])
def test_a_part_with_columns_of_other_types_is_refused(column: str, value: object, tmp_path: Path) -> None:
    """A column of texts raised ValueError in the summary."""
    frame = Frame.open(tmp_path, COMMAND)
    table = rows([1.0])
    table[column] = pd.Series([value])
    frame.append(table, "pairs-0")
    with pytest.raises(InputError, match=rf"column {column} of .*part-00000\.parquet must be of"):
        frame.read()


def test_a_part_without_a_column_of_keys_is_refused(tmp_path: Path) -> None:
    """The part raised KeyError in the summary."""
    frame = Frame.open(tmp_path, COMMAND)
    frame.append(rows([1.0]).drop(columns="seed"), "pairs-0")
    with pytest.raises(InputError, match=r"part-00000\.parquet must have the columns .*\. Add seed"):
        frame.read()


def test_a_frame_of_before_digests_is_read_and_its_rows_are_counted(tmp_path: Path) -> None:
    frame = Frame.open(tmp_path, COMMAND)
    frame.append(rows([1.0, 2.0]), "pairs-0")
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    del manifest["sha256"]
    older = {**manifest, "schema": "lossscope.frame/4", "parts": [{"key": "pairs-0", "rows": 2}]}
    (tmp_path / "manifest.json").write_text(json.dumps(older), encoding="utf-8")
    assert len(frame.read()) == 2
    rows([1.0]).to_parquet(tmp_path / "part-00000.parquet")
    with pytest.raises(InputError, match=r"must have the 2 rows that manifest\.json states; it has 1"):
        frame.read()


def test_means_and_population_deviations_are_over_batches() -> None:
    row = summarise(rows([1.0, 2.0, 6.0]), {"C_q": "samples"}).iloc[0]
    assert (row["mean"], row["n"], row["n_defined"], row["unit"]) == (3.0, 3, 3, "samples")
    assert row["std"] == pytest.approx(np.std([1, 2, 6]))


def test_undefined_batches_are_left_out_and_counted() -> None:
    row = summarise(rows([1.0, math.nan, 3.0]), {"C_q": "samples"}).iloc[0]
    assert (row["mean"], row["n"], row["n_defined"]) == (2.0, 3, 2)
    undefined = summarise(rows([math.nan]), {"C_q": "samples"}).iloc[0]
    assert math.isnan(undefined["mean"])
    assert undefined["n_defined"] == 0


def test_statistics_an_objective_does_not_have_are_absent() -> None:
    summary = summarise(rows([1.0], statistics="C_0"), {"C_q": "samples", "C_B": "samples"})
    assert summary.empty
    assert list(summary) == list(SUMMARY)


def test_rows_that_differ_in_any_key_are_summarised_apart() -> None:
    others = [rows([1.0], **{key: "x" if isinstance(rows([1.0])[key][0], str) else 7}) for key in KEYS]
    assert len(summarise(pd.concat([rows([1.0]), *others]), {"C_q": "samples"})) == 1 + len(KEYS)


def test_the_document_is_strict_json_with_null_for_nan() -> None:
    summary = summarise(rows([math.nan, math.nan]), {"C_q": "samples"})
    document = json.loads(summary_document(summary, {"name": "cocos"}), parse_constant=pytest.fail)
    assert (document["schema"], document["command"]) == ("lossscope.summary/1", {"name": "cocos"})
    (row,) = document["rows"]
    assert set(row) == set(SUMMARY)
    assert (row["mean"], row["n"], row["eps"], row["direction"]) == (None, 2, 0.01, "i2t")


def test_summaries_of_several_sources_are_concatenated() -> None:
    first, second = (summarise(rows([1.0], source=name), {"C_q": "samples"}) for name in "ab")
    assert join([first, second])["source"].tolist() == ["a", "b"]
    assert list(join([])) == list(SUMMARY)
