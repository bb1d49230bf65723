"""Does lossscope see the texts of a torch file without building anything, also in a damaged file?"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from lossscope.io.pickles import texts
from lossscope.io.pickles.texts import is_of_python2, texts_of
from tests.each import each


@each("zipped", [True, False])
def test_texts_of_both_containers_are_seen(zipped: bool, tmp_path: Path) -> None:
    torch.save({"state_dict": {"a": torch.ones(2)}}, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    assert {"state_dict", "a", "torch FloatStorage"} <= texts_of(tmp_path / "a.pt")


@each("zipped", [True, False])
def test_a_damaged_file_raises_nothing(zipped: bool, tmp_path: Path) -> None:
    torch.save({"state_dict": {"a": torch.ones(2)}}, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    content = (tmp_path / "a.pt").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "b.pt").write_bytes(content[:length])
        assert texts_of(tmp_path / "b.pt") <= texts_of(tmp_path / "a.pt") | {""}
    assert texts_of(tmp_path / "none.pt") == texts_of(tmp_path) == frozenset()


def test_a_packed_pickle_is_unpacked_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + 1000 * b"X\x01\x00\x00\x00a0" + b"X\x01\x00\x00\x00b.")
    assert texts_of(tmp_path / "a.pt") == {"a", "b"}
    monkeypatch.setattr(texts, "_MAX_BYTES", 100)
    assert texts_of(tmp_path / "a.pt") == {"a"}


def test_a_zip_without_a_pickle_has_no_texts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/other.txt", "a")
    assert texts_of(tmp_path / "a.pt") == frozenset()


@each("zipped", [True, False])
def test_texts_of_python_2_are_told_by_their_opcodes(zipped: bool, tmp_path: Path) -> None:
    torch.save({"opt": "text"}, tmp_path / "3.pth", _use_new_zipfile_serialization=zipped)
    assert not is_of_python2(tmp_path / "3.pth")
    assert not is_of_python2(tmp_path / "none.pth")


def test_a_file_of_python_2_is_seen(tmp_path: Path) -> None:
    magic, protocol, system = (pickle.dumps(value, 2) for value in (1, 2, {}))
    (tmp_path / "2.pth").write_bytes(magic + protocol + system + b"\x80\x02U\x04textq\x00.")
    assert is_of_python2(tmp_path / "2.pth")
    assert texts_of(tmp_path / "2.pth") == {"text"}
