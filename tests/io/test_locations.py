"""Are files opened from paths and URLs alike, and does a missing file give one clear message?"""

from __future__ import annotations

import gzip
import importlib
import os
import sys
from pathlib import Path

import fsspec
import pytest

from lossscope.errors import InputError
from lossscope.io.locations import is_url, join_location, list_files, location_exists, open_location, size_of, suffix_of
from tests.each import each


def content_of(location: str) -> bytes:
    with open_location(location) as file:
        return file.read()


@pytest.fixture
def memory() -> fsspec.AbstractFileSystem:
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pipe({"/data/b.jsonl": b"two", "/data/a.jsonl": b"one", "/data/sub/c.jsonl": b"three"})
    return system


def test_a_path_and_a_url_are_read_alike(tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"one")
    assert content_of(str(tmp_path / "a.jsonl")) == content_of("memory://data/a.jsonl") == b"one"
    assert content_of(f"file://{tmp_path}/a.jsonl") == b"one"
    assert size_of("memory://data/a.jsonl") == size_of(str(tmp_path / "a.jsonl")) == 3


def test_gz_is_unpacked(tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"one"))
    memory.pipe("/data/a.jsonl.gz", gzip.compress(b"two"))
    assert (content_of(str(tmp_path / "a.jsonl.gz")), content_of("memory://data/a.jsonl.gz")) == (b"one", b"two")
    assert suffix_of("A.JSONL.GZ") == suffix_of("https://host/a.jsonl?download=true") == ".jsonl"


def test_folders_and_patterns_name_files_in_order(tmp_path: Path, memory: fsspec.AbstractFileSystem) -> None:
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_text("x")
    expected = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert list_files(str(tmp_path)) == list_files(f"{tmp_path}/*.csv") == expected
    assert list_files("memory://data") == list_files("memory://data/*.jsonl")
    assert list_files("memory://data") == ["memory:///data/a.jsonl", "memory:///data/b.jsonl"]
    assert list_files("memory://data/a.jsonl") == ["memory://data/a.jsonl"]
    with pytest.raises(InputError, match=r"\*\.txt must name files; there are none of that pattern"):
        list_files(f"{tmp_path}/*.txt")


def test_names_are_joined_below_a_folder(memory: fsspec.AbstractFileSystem) -> None:
    assert join_location("s3://bucket/folder/", "qrels", "test.tsv") == "s3://bucket/folder/qrels/test.tsv"
    assert join_location("folder", "qrels") == str(Path("folder/qrels"))
    assert location_exists("memory://data/a.jsonl") and not location_exists("memory://data/none.jsonl")
    assert list_files("https://host/a.jsonl?x=*") == ["https://host/a.jsonl?x=*"], "the server is not asked"
    assert is_url("hf://datasets/x") and not is_url("C:/data") and not is_url("texts:file=a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_at_once_behind_a_url_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"a\.jsonl must be an ordinary file; it is a pipe"):
        content_of(f"file://{tmp_path}/a.jsonl")
    assert join_location(f"file://{tmp_path}", "a.jsonl") == str(tmp_path / "a.jsonl")


@each("protocol, package", [("s3", "s3fs"), ("gs", "gcsfs"), ("abfs", "adlfs")])
def test_a_url_without_its_package_names_it(protocol: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, protocol, raising=False)
    with pytest.raises(
        InputError, match=rf"train.jsonl must be .*{protocol}:// needs {package}.*: pip install {package}"
    ):
        content_of(f"{protocol}://bucket/train.jsonl")


@each("location, says", [
    ("memory://nowhere/a.jsonl", "memory://nowhere/a.jsonl must exist; there is no such file"),
    ("nothing://a/b.jsonl", "must be a URL that fsspec opens; got Protocol not known"),
    ("nowhere/a.jsonl", "nowhere/a.jsonl must exist; there is no such file"),
    ("x" * 5000, "must be a file; .*too long|must be a readable file; got File name too long"),
])  # fmt: skip
def test_what_is_not_there_is_named(location: str, says: str, memory: fsspec.AbstractFileSystem) -> None:
    with pytest.raises(InputError, match=says):
        content_of(location)
