"""Are files written atomically, and read without running code in them?"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from lossscope.errors import InputError, WriteError
from lossscope.io.files import (
    fingerprint,
    fingerprint_of,
    read_safetensors,
    read_tensors,
    read_torch,
    require_file,
    write_atomically,
    write_safetensors,
    write_text,
)
from lossscope.io.pickles.legacy_torch import read_legacy_torch
from tests.each import each


class Trap:
    """An object whose unpickling would make a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def legacy(path: Path, content: Any) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=False)
    return path


def write_zip(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


def test_a_failed_write_leaves_the_old_file_and_no_temporary_file(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError), write_atomically(tmp_path / "a.txt") as part:
        part.write_text("half of the n" * 9000 + "\udc80", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_another_file_in_place_of_the_temporary_one_is_an_error(tmp_path: Path) -> None:
    """A kill would leave the other file, and another writer could take it for a leftover."""
    (tmp_path / "other").write_text("new")
    with pytest.raises(WriteError, match="Its folder was removed"), write_atomically(tmp_path / "a") as part:
        (tmp_path / "other").replace(part)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_removed_while_a_library_opens_the_file_is_one_message(tmp_path: Path) -> None:
    """`rm -r` took the temporary file away, and the library made it anew before the folder was empty."""
    says = r"must be written whole; .* Its folder was removed while the command ran"
    with pytest.raises(WriteError, match=says), write_atomically(tmp_path / "a") as part:
        (part.unlink(), part.write_text("new"))
    assert list(tmp_path.iterdir()) == []


def test_tensors_are_written_as_save_file_writes_them(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(6.0).reshape(2, 3).T, "a": torch.ones(3, dtype=torch.float16)}
    write_safetensors(tmp_path / "ours", tensors, states_digest=False)
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "theirs")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_an_interrupted_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), write_atomically(tmp_path / "a.txt"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_write_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "a.txt"
    write_text(path, "één")
    write_text(path, "twee\n")
    assert path.read_bytes() == b"twee\n"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_written_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "ours", "x")
    (tmp_path / "usual").write_text("x")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def test_a_folder_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name of a file; there is a folder"):
        write_text(tmp_path, "x")


def test_tensors_and_plain_containers_come_back(tmp_path: Path) -> None:
    content = {"a": torch.arange(3), "b": [1, "x", None, {"c": 2.5}]}
    for write in (write_zip, legacy):
        loaded = read_torch(write(tmp_path / "a.pt", content))
        assert torch.equal(loaded["a"], content["a"])
        assert loaded["b"] == content["b"]


@each("content, fragment", [
    (b"", "it is empty"),
    (b"I am a text, not weights\n", "neither a zip nor a pickle"),
    (b"\x80\x02", "damaged"),
    (b"PK\x03\x04", "cut off or damaged. Copy it again"),
])  # fmt: skip
def test_a_file_of_another_format_is_refused_by_name(tmp_path: Path, content: bytes, fragment: str) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=fragment) as problem:
        read_torch(path)
    assert str(path) in str(problem.value)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must exist; there is no such file"):
        require_file(tmp_path / "none.pt")
    with pytest.raises(InputError, match="must be a file; it is a folder"):
        read_torch(tmp_path)


@each("write", [write_zip, legacy])
def test_a_file_cut_anywhere_is_an_input_error(tmp_path: Path, write: Any) -> None:
    whole = write(tmp_path / "whole.pt", {"a": torch.ones(40), "b": [1, {"c": "x"}]}).read_bytes()
    path = tmp_path / "cut.pt"
    for length in {*range(0, len(whole) - 1, 37), len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut\.pt must"):
            read_torch(path)


@each("write", [write_zip, legacy])
def test_flipped_bytes_raise_no_other_error(tmp_path: Path, write: Any) -> None:
    whole = write(tmp_path / "whole.pt", {"a": torch.ones(40), "b": [1, {"c": "x"}]}).read_bytes()
    path = tmp_path / "flipped.pt"
    for position in range(0, min(len(whole), 1200), 5):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        with contextlib.suppress(InputError):
            read_torch(path)


def test_tensors_without_all_their_numbers_are_refused(tmp_path: Path) -> None:
    """A sparse tensor of 80 bytes states any shape."""
    huge = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.tensor([1.0]), (10**10,))
    for number, tensor in enumerate((huge, torch.zeros(2, device="meta"))):
        torch.save({"a": tensor}, tmp_path / f"{number}.pt")
        with pytest.raises(InputError, match=rf"{number}\.pt must hold plain data; its tensors must hold all their"):
            read_torch(tmp_path / f"{number}.pt")


@each("write", [write_zip, legacy])
def test_foreign_objects_are_refused_by_name(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "a.pt", {"opt": argparse.Namespace(lr=0.1), "model": {}})
    with pytest.raises(InputError, match=r"it holds argparse\.Namespace objects, which are never loaded"):
        read_torch(path)


@each("write", [write_zip, legacy])
def test_code_in_a_pickle_is_not_run(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "a.pt", {"model": Trap(tmp_path / "sprung")})
    with pytest.raises(InputError, match="never loaded because that runs code"):
        read_torch(path)
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(InputError, match="must hold plain data"):
        read_torch(path)
    assert not (tmp_path / "sprung").exists()


def test_a_damaged_safetensors_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.torch.save_file({"a": torch.ones(9)}, path)
    assert torch.equal(read_tensors(path)["a"], torch.ones(9))
    whole = path.read_bytes()
    for broken in (b"", b"text", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="whole safetensors file"):
            read_safetensors(path)


def test_tensors_are_read_from_under_state_dict_too(tmp_path: Path) -> None:
    for content in ({"a": torch.ones(2)}, {"state_dict": {"a": torch.ones(2)}, "epoch": 3}):
        assert list(read_tensors(write_zip(tmp_path / "a.pt", content))) == ["a"]
    with pytest.raises(InputError, match="must hold a dict of tensors; got list"):
        read_tensors(write_zip(tmp_path / "a.pt", [1]))


def test_fingerprints_differ_with_contents_and_with_boundaries(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert fingerprint(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert fingerprint_of("ab", "c") != fingerprint_of("a", "bc") != fingerprint_of("abc")
    assert fingerprint_of("ab", b"c") == fingerprint_of(b"ab", "c")


@each("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2])
def test_tensors_with_which_torch_cannot_count_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    """isfinite raises NotImplementedError for them."""
    tensor = torch.zeros(4, dtype=torch.uint8).view(dtype)
    torch.save({"a": tensor}, tmp_path / "a.pt")
    safetensors.torch.save_file({"a": tensor}, tmp_path / "a.safetensors")
    for name in ("a.pt", "a.safetensors"):
        with pytest.raises(InputError, match=rf"{name} must .*; its tensors must be of ordinary numbers; one is torch"):
            read_tensors(tmp_path / name)


@each("zipped", [True, False])
def test_a_torch_file_of_a_newer_protocol_names_the_reader_that_reads_it(zipped: bool, tmp_path: Path) -> None:
    file = tmp_path / "new.pth"
    torch.save({"weights": torch.ones(3)}, file, pickle_protocol=4, _use_new_zipfile_serialization=zipped)
    with pytest.raises(InputError, match=rf"lossscope convert {file} OUT\.pt --old-pickle$"):
        read_torch(file)
    assert torch.equal(read_legacy_torch(file)["weights"], torch.ones(3))
