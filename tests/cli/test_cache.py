"""`lossscope cache`: what is kept of which model, its size, and its removal."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest

from lossscope.io.vector_cache import cache_folder, entries
from tests.command_line import document, lossscope, plain
from tests.sources.text_folders import DATA, text_encoder


def size_of_entries() -> int:
    return sum(entry.size for entry in entries(cache_folder()))


def test_models_are_listed_the_last_one_first(tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = text_encoder(tmp_path / "bert")
    assert lossscope("cocos", tiny_run, "--split", "val", "--quiet").exit_code == 0
    for entry in entries(cache_folder()):
        os.utime(entry.path, (86400, 86400))
    assert lossscope("cocos", folder, "--data", DATA, "--split", "val", "--quiet").exit_code == 0
    text, run = (result := document(lossscope("cache", "--format", "json")))["models"]
    assert result["schema"] == "lossscope.cache/1" and result["folder"] == str(cache_folder())
    assert result["bytes"] == size_of_entries() == text["bytes"] + run["bytes"] and result["limit"] == 10**10
    assert (text["name"], text["kind"], text["width"]) == (str(folder), "text encoder", 16)
    assert {key: run[key] for key in run if key not in ("name", "bytes")} == {
        "kind": "checkpoint", "rows": 120, "width": 16, "last_used": "1970-01-02 00:00:00+00:00",
    }  # fmt: skip
    lines = plain(lossscope("cache").stdout)
    assert f"Vectors in {cache_folder()}: " in lines and "of at most 10.0 GB." in lines
    assert "checkpoint: 120 vectors of 16 numbers, " in lines and "last used 1970-01-02 00:00 UTC" in lines
    rows = list(csv.DictReader(io.StringIO(lossscope("cache", "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == [text["name"], run["name"]]


def test_empty_removes_all_and_says_how_much(tiny_run: Path) -> None:
    assert lossscope("cocos", tiny_run, "--split", "val", "--quiet").exit_code == 0
    size = size_of_entries()
    assert f"Removed {size / 1000:.1f} kB. " in plain(lossscope("cache", "--empty").stdout)
    assert entries(cache_folder()) == [] and list(cache_folder().iterdir()) == []
    result = document(lossscope("cache --empty --format json"))
    assert result["models"] == [] and (result["freed"], result["bytes"]) == (0, 0)


def test_a_folder_that_is_not_there_has_no_vectors() -> None:
    assert not cache_folder().exists()
    assert plain(lossscope("cache").stdout).endswith(": 0 B of at most 10.0 GB.")
    assert lossscope("cache --format csv").stdout == "name,kind,rows,width,bytes,last_used\n"


def test_a_name_that_steers_a_terminal_is_written_out(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m").symlink_to(tiny_run)
    assert lossscope("cocos", tmp_path / "a\x1b[31m", "--split", "val", "--quiet").exit_code == 0
    assert "\x1b" not in lossscope("cache").stdout


def test_a_limit_that_is_no_size_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSSCOPE_CACHE_SIZE", "ten")
    result = lossscope("cache")
    assert result.exit_code == 1
    assert "LOSSSCOPE_CACHE_SIZE must be a size such as 10GB or 500MB, or 0; got 'ten'" in plain(result.stderr)
