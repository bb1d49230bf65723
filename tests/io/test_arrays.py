"""Is the header of an array compared with its file before anything is allocated, and its bytes with their checksum?"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lossscope.errors import InputError
from lossscope.io.arrays import open_npy, read_npy, read_npz
from tests.each import each

ARRAYS: dict[str, npt.NDArray[Any]] = {
    "rows": np.arange(12, dtype=np.float32).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array(["a", "bc"]),
    "none": np.zeros((0, 4)),
    "one": np.array(2.5),
    "swapped": np.arange(3, dtype=">i4"),
    "flags": np.array([True, False]),
}


def npy(array: npt.NDArray[Any], **stated: Any) -> bytes:
    """Return a .npy file; its header may differ from its array."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {**np.lib.format.header_data_from_array_1_0(array), **stated})
    return stream.getvalue() + array.tobytes("F" if np.isfortran(array) else "C")


@each("name", ARRAYS)
def test_arrays_come_back_as_numpy_reads_them(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS[name])
    for read in (read_npy(tmp_path / "a.npy"), open_npy(tmp_path / "a.npy", "c")):
        assert np.array_equal(read, ARRAYS[name])
        assert read.dtype == ARRAYS[name].dtype


@each("save", [np.savez, np.savez_compressed])
def test_archives_come_back_as_numpy_reads_them(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **ARRAYS)
    read = read_npz(tmp_path / "a.npz")
    assert read.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(read[name], array)
        assert read[name].dtype == array.dtype
        assert read[name].flags.writeable


@each("content", [
    npy(np.zeros(4), shape=(99_999_999_999, 16)),
    npy(np.zeros(4), shape=(5,)),
    npy(np.zeros(4), shape=(3,)),
    npy(np.zeros(4), shape=(-1,)),
    npy(np.zeros(4), descr="|O"),
    npy(np.zeros(4), descr=[("a", "<f8")]),
    npy(np.zeros(0), shape=(10**18,), descr="<U0"),
    npy(np.zeros(4))[:-1],
    npy(np.zeros(4)) + b"x",
    b"\x93NUMPY\x01\x00",
    b"\x93NUMPY\x03\x00\x10\x00\x00\x00{}",
    b"\x93NUMPY\x01\x00\x10\x00" + b"-" * 16,
    b"",
    b"text",
])  # fmt: skip
def test_a_header_that_its_file_does_not_fit_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.npy must be a whole \.npy file"):
        open_npy(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(InputError, match=r"x\.npy' of .*a\.npz must be a whole \.npy file"):
        read_npz(tmp_path / "a.npz")


@each("save", [np.savez, np.savez_compressed])
def test_one_flipped_bit_of_an_archive_is_seen_or_changes_nothing(save: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save(path, x=np.arange(40.0))
    whole, noticed = path.read_bytes(), 0
    for position in range(0, len(whole), 5):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            read = read_npz(path)
        except InputError:
            noticed += 1
            continue
        assert all(np.array_equal(array, np.arange(40.0)) for array in read.values())
    assert noticed > len(whole) / 10


def test_archives_with_other_members_or_one_name_twice_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "x")
    with pytest.raises(InputError, match=r"members of .*a\.npz must be \.npy arrays"):
        read_npz(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", npy(np.ones(1)))
    with pytest.raises(InputError, match="different names"):
        read_npz(tmp_path / "a.npz")


def test_an_empty_file_a_text_and_a_pipe_are_refused_by_name(tmp_path: Path) -> None:
    for content in (b"", b"text", b"PK\x03\x04"):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.npz must be a whole \.npz file; it is no zip"):
            read_npz(tmp_path / "a.npz")
    os.mkfifo(tmp_path / "b.npz")
    with pytest.raises(InputError, match="ordinary file; it is a pipe"):
        read_npz(tmp_path / "b.npz")


def test_texts_whose_numbers_are_no_letters_are_refused(tmp_path: Path) -> None:
    """Python raised SystemError: invalid maximum character passed to PyUnicode_New."""
    array = np.frombuffer(np.array([0x41, 0x7FFFFFFF], np.uint32).tobytes(), "<U1")
    np.savez(tmp_path / "a.npz", caption=array)
    np.save(tmp_path / "a.npy", array)
    for read, name in ((read_npz, "a.npz"), (read_npy, "a.npy")):
        with pytest.raises(InputError, match="must be of letters of Unicode; it holds the number 2147483647"):
            read(tmp_path / name)


@each("letter", [0xD800, 0xDFFF])
def test_halves_of_surrogate_pairs_are_refused(letter: int, tmp_path: Path) -> None:
    """`verify` found no fault, and writing run files raised UnicodeEncodeError."""
    np.savez(tmp_path / "a.npz", image_id=np.array(["a", f"b{chr(letter)}"]))
    with pytest.raises(InputError, match=f"must be of letters of Unicode; it holds the number {letter}"):
        read_npz(tmp_path / "a.npz")
