"""Is a changed bit in a torch file noticed, and does the message name the part of the file?"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.errors import InputError
from lossscope.io.arrays import read_npz
from lossscope.io.files import read_torch
from tests.each import each

CONTENT = {"weights": {"a": torch.arange(300.0), "b": torch.ones(7, dtype=torch.int64)}, "epoch": 3}


def save(path: Path) -> bytes:
    torch.save(CONTENT, path)
    return path.read_bytes()


def place_of(path: Path, member: str) -> int:
    """Return where the bytes of a member begin."""
    with zipfile.ZipFile(path) as archive:
        return path.read_bytes().index(archive.read(member))


@each("member", ["a/data/0", "a/data/1"], "bit", [0, 7])
def test_one_flipped_bit_in_the_numbers_is_an_error_that_names_the_part(member: str, bit: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    whole, position = save(path), place_of(path, member)
    path.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << bit]) + whole[position + 1 :])
    with pytest.raises(
        InputError, match=f"a.pt must be a whole torch file; its part '{member}' differs from its checksum"
    ):
        read_torch(path)


def test_a_flipped_bit_anywhere_is_seen_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    whole = save(path)
    for position in range(0, len(whole), 29):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        try:
            read = read_torch(path)
        except InputError:
            continue
        assert all(torch.equal(read["weights"][name], CONTENT["weights"][name]) for name in ("a", "b"))  # type: ignore[index]
        assert read["epoch"] == 3


def test_a_file_that_was_written_without_checksums_is_read(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        save(tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert torch.equal(read_torch(tmp_path / "a.pt")["weights"]["a"], CONTENT["weights"]["a"])  # type: ignore[index]


def rewritten(path: Path, method: int, **replaced: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for name, content in replaced.items():
            archive.writestr(name, content)


def test_a_file_that_was_packed_again_is_read_and_a_bomb_refused(tmp_path: Path) -> None:
    save(tmp_path / "a.pt")
    rewritten(tmp_path / "a.pt", zipfile.ZIP_DEFLATED)
    assert torch.equal(read_torch(tmp_path / "a.pt")["weights"]["a"], CONTENT["weights"]["a"])  # type: ignore[index]
    rewritten(tmp_path / "a.pt", zipfile.ZIP_DEFLATED, more=b"\0" * 3_000_000)
    with pytest.raises(InputError, match="far larger than the file"):
        read_torch(tmp_path / "a.pt")


def test_a_tensor_that_states_more_numbers_than_the_file_holds_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1).expand(10**12)}, tmp_path / "a.pt")
    with pytest.raises(InputError, match="1000000000000 numbers that the file does not hold"):
        read_torch(tmp_path / "a.pt")
    torch.save({"a": torch.zeros(3, 1).expand(3, 50)}, tmp_path / "a.pt")
    assert read_torch(tmp_path / "a.pt")["a"].shape == (3, 50)


@each("lost", [1, 2])
def test_an_entry_that_takes_in_the_next_ones_is_an_error(tmp_path: Path, lost: int) -> None:
    """After a flipped bit in the length of a comment, zipfile lists fewer members; optional arrays vanished."""
    path = tmp_path / "a.npz"
    np.savez(path, images=np.eye(3), captions=np.eye(3), caption_image=np.arange(3))
    whole = bytearray(path.read_bytes())
    positions = [position for position in range(len(whole)) if whole[position : position + 4] == b"PK\1\2"]
    assert len(positions) == 3
    entry = positions[2 - lost] + 32  # where the length of its comment is
    whole[entry : entry + 2] = (0x8000).to_bytes(2, "little")
    path.write_bytes(whole)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 3 - lost
    with pytest.raises(InputError, match=rf"must list every member; it states 3 and lists {3 - lost}\. Copy it again"):
        read_npz(path)


@each("more", [b"", b"behind it", b"\0" * 70_000])
def test_members_are_counted_whatever_is_behind_the_archive(tmp_path: Path, more: bytes) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, rows=np.arange(3))
    path.write_bytes(path.read_bytes() + more)
    if len(more) > 1 << 16:
        with pytest.raises(InputError):
            read_npz(path)
    else:
        assert read_npz(path)["rows"].tolist() == [0, 1, 2]
