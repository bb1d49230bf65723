"""Are kept vectors those of their key, or made again; do the least recently used go first?"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.io import vector_cache
from lossscope.io.cached_models import cached_models, empty_cache
from lossscope.io.files import fingerprint_of, write_safetensors
from lossscope.io.vector_cache import cache_limit, entries, read_entry, write_entry
from tests.each import each


def entry(folder: Path, model: str, key: str) -> Path:
    return folder / fingerprint_of(model) / f"{fingerprint_of(key)}.safetensors"


def rows(number: int = 3) -> dict[str, Tensor]:
    return {"vectors": torch.arange(4.0 * number).reshape(number, 4)}


def written(folder: Path, model: str, key: str, number: int = 3) -> Path:
    path = entry(folder, model, key)
    write_entry(path, rows(number), model, "text encoder")
    return path


def flip(path: Path, byte: int) -> None:
    content = bytearray(path.read_bytes())
    content[byte] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a bit of a vector": lambda path: flip(path, -1),
    "a bit of the head": lambda path: flip(path, 20),
    "another length": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another program's": lambda path: safetensors.torch.save_file(rows(), path),
    "another shape": lambda path: write_safetensors(path, {"vectors": rows()["vectors"].reshape(4, 3)}),
    "another key's": lambda path: path.write_bytes(written(path.parents[1], "model", "other").read_bytes()),
    "a text": lambda path: path.write_text("vectors"),
}


@each("case", DAMAGES)
def test_a_damaged_entry_is_removed_and_never_read(case: str, tmp_path: Path) -> None:
    path = written(tmp_path, "model", "key")
    kept = read_entry(path)
    assert kept is not None and torch.equal(kept["vectors"], rows()["vectors"])
    DAMAGES[case](path)
    assert read_entry(path) is None and not path.exists()
    written(tmp_path, "model", "key")
    assert read_entry(path) is not None


def test_the_least_recently_used_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [written(tmp_path, model, "key") for model in "abc"]
    for age, path in enumerate(paths):
        os.utime(path, (1000 + age, 1000 + age))
    assert read_entry(paths[0]) is not None  # now b is the oldest
    monkeypatch.setattr(vector_cache, "cache_limit", lambda: sum(path.stat().st_size for path in paths))
    last = written(tmp_path, "d", "key")
    assert [path.exists() for path in (*paths, last)] == [True, False, True, True]
    assert not paths[1].parent.exists()
    assert [model.name for model in cached_models(tmp_path)] == ["d", "a", "c"]


def test_an_entry_above_the_limit_is_not_written_and_drives_out_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = written(tmp_path, "a", "key")
    monkeypatch.setenv("LOSSSCOPE_CACHE_SIZE", "1KB")
    assert not written(tmp_path, "b", "key", 1000).exists() and small.exists()
    monkeypatch.setenv("LOSSSCOPE_CACHE_SIZE", "0")
    assert not written(tmp_path, "c", "key").exists()


@each("text, size", [("", 10**10), ("0", 0), ("500MB", 500 * 10**6), ("1.5 gb", 15 * 10**8), (" 2TB ", 2 * 10**12)])
def test_a_limit_is_a_number_and_a_unit(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSSCOPE_CACHE_SIZE", text)
    assert cache_limit() == size


@each("text", ["10", "ten GB", "-1GB", "1e3MB", "GB"])
def test_another_limit_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSSCOPE_CACHE_SIZE", text)
    with pytest.raises(
        InputError, match=f"LOSSSCOPE_CACHE_SIZE must be a size such as 10GB or 500MB, or 0; got '{text}'"
    ):
        cache_limit()


def test_files_of_other_programs_in_the_folder_stay(tmp_path: Path) -> None:
    written(tmp_path, "model", "key")
    others = [tmp_path / "model.safetensors", tmp_path / "data" / "a.npy", tmp_path / fingerprint_of("m") / "a.txt"]
    others += [tmp_path / "data" / f"{fingerprint_of('x')}.safetensors", tmp_path / f"{fingerprint_of('x')}.json"]
    for file in others:
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    assert len(entries(tmp_path)) == 1
    assert len(empty_cache(tmp_path)) == 1 and entries(tmp_path) == []
    assert all(file.exists() for file in others)


def test_nothing_that_stands_in_the_way_is_an_error(tmp_path: Path) -> None:
    path = entry(tmp_path, "model", "key")
    path.mkdir(parents=True)
    write_entry(path, rows(), "model", "text encoder")
    assert read_entry(path) is None and entries(tmp_path) == []
    (tmp_path / "file").write_text("x")
    assert not written(tmp_path / "file", "model", "key").exists()
    assert cached_models(tmp_path / "missing") == [] == empty_cache(tmp_path / "file")


def test_a_full_disk_keeps_nothing_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lossscope.io.files.sync_file", full)
    path = written(tmp_path, "model", "key")
    assert not path.exists() and list(path.parent.iterdir()) == []


def test_models_are_listed_with_what_their_entries_hold(tmp_path: Path) -> None:
    first, second = written(tmp_path, "a", "one", 3), written(tmp_path, "a", "two", 5)
    old = written(tmp_path, "b", "one")
    os.utime(old, (1000, 1000))
    written(tmp_path, "c", "one").write_bytes(b"junk")
    write_safetensors(
        tmp_path / f"{fingerprint_of('old')}.safetensors", {"images": torch.ones(2, 3), "captions": torch.ones(4, 3)}
    )
    listed = {(model.name, model.kind): model for model in cached_models(tmp_path)}
    assert set(listed) == {("a", "text encoder"), ("b", "text encoder"), ("", "unreadable"), ("", "earlier lossscope")}
    a, earlier = listed["a", "text encoder"], listed["", "earlier lossscope"]
    assert (a.rows, a.width, a.size) == (8, 4, first.stat().st_size + second.stat().st_size)
    assert (earlier.rows, earlier.width) == (6, 3)
    assert listed["b", "text encoder"].used == 1000
