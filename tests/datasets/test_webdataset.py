"""Are samples of tar shards read by key, with captions of text or json, and unreadable shards refused?"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.base import Dataset
from lossscope.datasets.formats.tar_index import list_members
from lossscope.datasets.webdataset import WebDataset
from lossscope.errors import InputError
from tests.each import each
from tests.rewriting import WRITERS, Writer


def picture(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (6, 6), (shade, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def write(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        tar.addfile(_folder("d"))
        for name, content in files.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            tar.addfile(item, io.BytesIO(content))
    return path


def _folder(name: str) -> tarfile.TarInfo:
    item = tarfile.TarInfo(name)
    item.type = tarfile.DIRTYPE
    return item


def samples(numbers: range) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for number in numbers:
        files |= {f"d/{number:04d}.png": picture(number), f"d/{number:04d}.txt": f"Text {number}.\n".encode()}
    return files


def test_shards_are_split_by_their_names(tmp_path: Path) -> None:
    write(tmp_path / "f-train-000.tar", samples(range(3)))
    write(tmp_path / "f-train-001.tar", samples(range(3, 5)))
    write(tmp_path / "f_test.tar", samples(range(5, 7)))
    data = WebDataset(str(tmp_path / "*.tar"), size=4)
    assert isinstance(data, Dataset)
    assert data.splits() == ("train", "test")
    split = data.split("train")
    assert split.image_ids == [f"d/{row:04d}" for row in range(5)]
    assert split.captions == [f"Text {row}." for row in range(5)]
    assert split.images.take(np.array([4, 0, 3]))[:, 0, 0, 0].tolist() == [4, 0, 3]
    with pytest.raises(InputError, match="must be one of train, test; got 'val'"):
        data.split("val")


def test_samples_are_split_by_the_hash_of_their_key(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", samples(range(100)))
    data = WebDataset(str(tmp_path / "a.tar"), cut="hash", size=4)
    parts = [data.split(name).image_ids for name in data.splits()]
    assert sorted(id for part in parts for id in part) == [f"d/{row:04d}" for row in range(100)]
    assert 65 < len(parts[0]) < 95
    write(tmp_path / "a.tar", samples(range(50)))
    again = WebDataset(str(tmp_path / "a.tar"), cut="hash", size=4)
    assert set(again.split("val").image_ids) <= set(parts[1])


def test_captions_are_lines_or_json(tmp_path: Path) -> None:
    files = {
        "a.jpg": picture(1), "a.txt": b"One.\n\nTwo.\n",
        "b.png": picture(2), "b.json": json.dumps({"caption": "Three."}).encode(),
        "c.PNG": picture(3), "c.json": json.dumps({"captions": ["Four.", " Five."]}).encode(), "c.cls": b"5",
        "alone.txt": b"no picture",
    }  # fmt: skip
    split = WebDataset(str(write(tmp_path / "train.tar", files)), size=4).split("train")
    assert split.captions == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert split.caption_ids == ["a#0", "a#1", "b#0", "c#0", "c#1"]
    assert split.caption_image.tolist() == [0, 0, 1, 2, 2]
    assert WebDataset(str(tmp_path / "train.tar"), captions=1).split("train").captions == ["One.", "Three.", "Four."]


@each("files, message", [
    ({"a.jpg": b"x"}, r"train\.tar:a\.jpg must have a caption beside it, .txt or .json; got jpg"),
    ({"a.jpg": b"x", "a.txt": b"\n"}, "must have at least one caption"),
    ({"a.jpg": b"x", "a.txt": b"\xff\xfe"}, "a.txt must be UTF-8 text"),
    ({"a.jpg": b"x", "a.json": b"{"}, "a.json must be whole JSON"),
    ({"a.jpg": b"x", "a.json": b"[]"}, "a.json must be an object"),
    ({"a.jpg": b"x", "a.json": b'{"caption": 5}'}, "'caption' of .* must be text; got 5"),
    ({"a.txt": b"x"}, "must hold at least one image"),
])  # fmt: skip
def test_malformed_samples_are_refused(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    write(tmp_path / "train.tar", files)
    with pytest.raises(InputError, match=message):
        WebDataset(str(tmp_path / "train.tar")).split("train")


def test_a_broken_picture_is_refused_or_left_out(tmp_path: Path) -> None:
    files = samples(range(3)) | {"d/0001.png": b"no picture"}
    write(tmp_path / "train.tar", files)
    with pytest.raises(InputError, match=r"train\.tar:d/0001\.png must be a whole picture"):
        WebDataset(str(tmp_path / "train.tar"), size=4).split("train").images.take(np.array([1]))
    split = WebDataset(str(tmp_path / "train.tar"), size=4, on_error="skip").split("train")
    assert split.image_ids == ["d/0000", "d/0002"]
    assert split.skipped == (f"{tmp_path / 'train.tar'}:d/0001.png",)


def test_the_same_key_in_two_shards_is_refused(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / f"train-{number}.tar", samples(range(2)))
    with pytest.raises(InputError, match="image ids of 'train' must be unique; got 'd/0000' 2 times"):
        WebDataset(str(tmp_path / "*.tar"), size=4).split("train")


def test_shards_cut_off_compressed_or_missing_are_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "train.tar", samples(range(3))).read_bytes()
    data = WebDataset(str(tmp_path / "train.tar"), size=4)
    for content in (whole[:1500], whole[:700], whole[: 512 * 2 + 10], gzip.compress(whole), b"", b"no tar" * 300):
        (tmp_path / "train.tar").write_bytes(content)
        with pytest.raises(InputError, match=r"train\.tar must be a whole tar"):
            data.split("train")
    with pytest.raises(InputError, match="shards must match files; got none like"):
        WebDataset(str(tmp_path / "gone*.tar")).splits()
    with pytest.raises(InputError, match="must exist; there is no such file"):
        list(list_members(tmp_path / "gone.tar"))


@each("writer, got", WRITERS)
def test_a_shard_that_changes_after_it_was_indexed_is_refused(writer: Writer, got: str, tmp_path: Path) -> None:
    """Its index gave the bytes of other pictures, or an error of a picture that was none."""
    shard = write(tmp_path / "train.tar", samples(range(3)))
    split = WebDataset(str(shard), size=4).split("train")
    writer(shard)
    with pytest.raises(InputError, match=rf"train\.tar must stay as it is while lossscope reads it, .*; it {got}"):
        split.images.take(np.array([2]))


@each("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_shard_are_refused(kind: bytes, tmp_path: Path) -> None:
    entry = tarfile.TarInfo("d/0009.png")
    entry.type, entry.linkname = kind, "/etc/passwd"
    with tarfile.open(write(tmp_path / "train.tar", samples(range(2))), "a") as tar:
        tar.addfile(entry)
    with pytest.raises(InputError, match=r"must hold plain files; 'd/0009\.png' in it is a link, a device or sparse"):
        WebDataset(str(tmp_path / "train.tar"), size=4).split("train")


def test_a_member_with_a_path_outside_is_a_name_alone(tmp_path: Path) -> None:
    """Members are read where they lie in the tar, and none is unpacked."""
    files = {"../outside.png": picture(1), "../outside.txt": b"a caption", "/etc/x.png": picture(2), "/etc/x.txt": b"b"}
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "train.tar", files)
    before = sorted(tmp_path.rglob("*"))
    split = WebDataset(str(tmp_path / "in" / "train.tar"), size=4).split("train")
    split.images.take(np.arange(2))
    assert split.captions == ["a caption", "b"] and sorted(tmp_path.rglob("*")) == before
