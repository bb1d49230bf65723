"""Are files opened from paths and URLs alike, and does a missing file give one clear message?"""

from __future__ import annotations

import gzip
import importlib
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from lossscope.errors import InputError
from lossscope.io import url_files
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


def zipped(path: Path, members: dict[str, bytes]) -> str:
    """Return the `file://` URL of a zip archive."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return f"file://{path}"


@each("location, suffix", [
    ("zip://a.jsonl::file:///x.zip", ".jsonl"),
    ("zip://a.csv.gz::https://host/x.zip?download=true", ".csv"),
    ("zip://folder/a.parquet::simplecache::s3://bucket/x.zip", ".parquet"),
    ("simplecache::zip://a.tsv::s3://bucket/x.zip", ".tsv"),
    ("simplecache::s3://bucket/x.jsonl", ".jsonl"),
    ("filecache::https://host/x.CSV.GZ?token=a.zip#part", ".csv"),
    ("blockcache::hf://datasets/name/x.parquet", ".parquet"),
    ("tar://a.jsonl::file:///x.tar", ".jsonl"),
    ("zip://::file:///x.zip", ".zip"),
    ("memory://x.csv", ".csv"),
    ("https://host.csv", ""),
    ("https://host.csv/x.jsonl", ".jsonl"),
])  # fmt: skip
def test_the_first_link_with_a_path_names_the_file(location: str, suffix: str) -> None:
    """The last link of a chain named it: a CSV file in a zip archive was of the suffix .zip."""
    assert suffix_of(location) == suffix


def test_chains_of_urls_are_read_by_the_name_of_the_file_in_them(
    tmp_path: Path, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = {"a.csv": b"one", "a.jsonl.gz": gzip.compress(b"two"), "b/c.csv": b"three"}
    file = zipped(tmp_path / "x.zip", members)
    memory.pipe("/x.zip", (tmp_path / "x.zip").read_bytes())
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    outer = zipped(tmp_path / "y.zip", {"x.zip": (tmp_path / "x.zip").read_bytes()})
    for archive in (
        *(f"{link}{file}" for link in ("zip://{}::", "zip://{}::simplecache::", "simplecache::zip://{}::")),
        "zip://{}::memory://x.zip",
        "filecache::zip://{}::memory://x.zip",
        f"tar://{{}}::file://{tmp_path}/x.tar",
        f"zip://{{}}::zip://x.zip::{outer}",
    ):
        assert content_of(archive.format("a.csv")) == b"one", archive
        assert content_of(archive.format("a.jsonl.gz")) == b"two", archive
        assert content_of(archive.format("/b/c.csv")) == b"three", archive
        assert [content_of(name) for name in list_files(archive.format("*.csv"))] == [b"one"], archive
        assert [content_of(name) for name in list_files(archive.format("b"))] == [b"three"], archive
    monkeypatch.chdir(tmp_path)
    for folder in ("data", "git", "reference"):  # names of protocols, too
        (tmp_path / folder).mkdir()
        zipped(tmp_path / folder / "x.zip", members)
        assert content_of(f"zip://a.csv::{folder}/x.zip") == b"one"
    assert content_of("simplecache::memory://data/a.jsonl") == b"one"
    assert list(map(content_of, list_files("simplecache::memory://data/*.jsonl"))) == [b"one", b"two"]


@each("location, protocol", [
    ("reference://a.jsonl", "reference"),
    ("reference://a.jsonl::memory://x.json", "reference"),
    ("simplecache::reference://a.jsonl::memory://x.json", "reference"),
    ("filecache::reference::file:///x.json", "reference"),
    ("Reference::file:///x.json", "reference"),
    ("generic://a.jsonl", "generic"),
    ("dask://a.jsonl", "dask"),
    ("dask::s3://bucket/a.jsonl", "dask"),
    ("async_wrapper::file:///a.jsonl", "async_wrapper"),
    ("dir::memory://data", "dir"),
    ("git://main@a.jsonl", "git"),
    ("simplecache::git://path:main@a.jsonl", "git"),
    ("jupyter://a.jsonl", "jupyter"),
    ("libarchive://a.jsonl::file:///x.7z", "libarchive"),
    ("simplecache::data:text/plain,one", "data"),
])  # fmt: skip
def test_protocols_that_do_more_than_read_files_are_refused(location: str, protocol: str) -> None:
    """`reference://` ran templates of jinja2 that the file names, before fsspec 2026.6 without a sandbox."""
    says = rf"must be a URL of files, such as s3://, .*; {protocol} can run code or read elsewhere: copy the file"
    for read in (content_of, list_files, location_exists, size_of):
        with pytest.raises(InputError, match=says):
            read(location)


def test_every_protocol_of_fsspec_is_allowed_or_refused() -> None:
    """One that a later release adds is refused; packages that register their own protocol are trusted."""
    known = set(fsspec.available_protocols())
    assert known - url_files.PROTOCOLS >= {"reference", "generic", "dask", "git", "jupyter", "dir"}
    assert not url_files.PROTOCOLS & {"reference", "generic", "dask", "async_wrapper", "dir", "git", "dvc", "pyscript"}


def test_protocols_that_packages_register_are_read(memory: fsspec.AbstractFileSystem) -> None:
    class Store(MemoryFileSystem):  # type: ignore[misc]
        protocol = "mystore"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(super()._strip_protocol(path.removeprefix("mystore:/")))

    fsspec.register_implementation("mystore", Store, clobber=True)
    assert content_of("mystore://data/a.jsonl") == content_of("simplecache::mystore://data/a.jsonl") == b"one"
