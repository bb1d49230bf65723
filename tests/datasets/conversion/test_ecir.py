"""Are the pickled sets of the ECIR reproduction converted to Karpathy's format, and malformed ones refused?"""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.conversion.ecir import ConversionResult, convert
from lossscope.datasets.karpathy import Karpathy
from lossscope.errors import InputError
from tests.each import each


def jpeg(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, shade, shade)).save(buffer, "JPEG")
    return buffer.getvalue()


def one_set(first: int, images: int = 2, listed: int = 5, stored: int = 5) -> dict[str, Any]:
    """Return a set whose captions are not in the order of its images."""
    content: dict[str, Any] = {"images": collections.defaultdict(dict), "captions": collections.defaultdict(dict)}
    for image in range(first, first + images):
        ids = [100 * image + k for k in range(listed)]
        content["images"][image] = {"image": jpeg(image), "filename": f"{image}.jpg", "caption_ids": ids}
    for k in range(stored):
        for image in range(first, first + images):
            record = {"caption": f"Text {image} {k}.", "imgid": image, "tokens": ["text"], "filename": f"{image}.jpg"}
            content["captions"][100 * image + k] = record
    return content


def write(root: Path, **sets: Any) -> Path:
    for name, content in sets.items():
        (root / f"{name}_set.p").write_bytes(pickle.dumps(content))
    return root


def test_the_sets_become_a_karpathy_folder_with_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path, train=one_set(0), val=one_set(10, 1), test=one_set(20, 3))
    calls: list[Any] = []
    result = convert(tmp_path, tmp_path / "out", "f30k", lambda *step: calls.append(step))
    assert result == ConversionResult(images=6, captions=30, dropped_captions=0, dropped_images=0)
    assert calls[-1] == ("pictures of test", 3, 3)
    assert (tmp_path / "out/images/21.jpg").read_bytes() == jpeg(21)
    split = Karpathy(tmp_path / "out", "f30k", size=8).split("test")
    assert split.image_ids == ["20.jpg", "21.jpg", "22.jpg"]
    assert split.captions[5:7] == ["Text 21 0.", "Text 21 1."]
    assert split.caption_ids[5] == "2100"
    assert abs(int(split.images.take(np.array([1]))[0, 0, 0, 0]) - 21) < 4
    assert convert(tmp_path, tmp_path / "out", "f30k") == result


def test_ids_and_images_without_captions_are_dropped_and_counted(tmp_path: Path) -> None:
    content = one_set(0, images=3, listed=7)
    for k in range(5):
        del content["captions"][200 + k]
    result = convert(write(tmp_path, test=content), tmp_path / "out", "coco")
    assert result == ConversionResult(images=2, captions=10, dropped_captions=2 + 2 + 7, dropped_images=1)
    assert not (tmp_path / "out/images/2.jpg").exists()
    images = json.loads((tmp_path / "out/dataset_coco.json").read_text())["images"]
    assert [image["sentids"] for image in images] == [[0, 1, 2, 3, 4], [100, 101, 102, 103, 104]]


def _change(kind: str, key: int, **fields: Any) -> dict[str, Any]:
    content = one_set(0)
    content[kind][key] = {**content[kind][key], **fields}
    return content


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


@each("content, message", [
    ([], r"test_set\.p must be an object; got \[\]"),
    ({"images": {}}, "must have the key 'captions'"),
    (_change("images", 0, filename="../x.jpg"), "'filename' of image 0 of .* must be a file's name without folders"),
    (_change("images", 0, filename="1.jpg"), "'filename' of image 1 of .* must be unique; got '1.jpg' a second time"),
    (_change("images", 0, image="text"), "'image' of image 0 of .* must be bytes; got 'text'"),
    (_change("captions", 1, imgid=99), "'imgid' of caption 1 of .* must be that of one of its images; got 99"),
    (_change("captions", 1, imgid=[0]), "'imgid' of caption 1"),
    (_change("captions", 1, caption=5), "'caption' of caption 1 of .* must be text"),
    (_change("captions", 1, tokens=[5]), "a token of caption 1 of .* must be text"),
    (_change("captions", 1, tokens=Evil()), "got posix.system, which was not run"),
    ({"images": {0: 5}, "captions": {}}, "image 0 of .* must be an object"),
    ({"images": {b"0": {}}, "captions": {}}, "id of an image of .* must be a whole number of 64 bits or text"),
    ({"images": {10**5000: {}}, "captions": {}}, "it holds an integer of 2077 bytes"),
    ({**one_set(0), "captions": {b"1": {}}}, "id of a caption of .* must be a whole number of 64 bits or text"),
    (_change("captions", 1, imgid=10**5000), "it holds an integer of 2077 bytes"),
    (_change("captions", 1, imgid=True), "'imgid' of caption 1 of .*; got True"),
    (_change("captions", 1, tokens=5), "'tokens' of caption 1 of .* must be a list; got 5"),
    (_change("captions", 1, caption="a\ud800"), r"texts must be of letters of Unicode; got \\ud800"),
    (_change("captions", 1, tokens=["a\ud800"]), r"texts must be of letters of Unicode; got \\ud800"),
    (_change("images", 1, filename="a\ud800.jpg"), "texts must be of letters of Unicode"),
    (_change("images", 1, filename="a" * 300), "'filename' of image 1 of .* must be of at most 200 bytes"),
    (_change("images", 1, filename="a/b.jpg"), "must be a file's name without folders; got 'a/b.jpg'"),
    (_change("images", 1, filename="a\\b.jpg"), "must be a file's name without folders"),
    (_change("images", 1, filename=".."), "must be a file's name without folders"),
])  # fmt: skip
def test_malformed_sets_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        convert(write(tmp_path, test=content), tmp_path / "out", "x")
    assert not (tmp_path / "out").exists()  # no picture is written before all is checked


def test_a_malformed_set_after_a_valid_one_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path, train=one_set(0), test=_change("captions", 1, tokens=5))
    with pytest.raises(InputError, match="'tokens' of caption 1"):
        convert(tmp_path, tmp_path / "out", "x")
    assert not (tmp_path / "out").exists()


def test_a_file_name_in_two_sets_and_a_folder_without_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold train_set\.p, val_set\.p or test_set\.p; got none"):
        convert(tmp_path, tmp_path / "out", "x")
    with pytest.raises(InputError, match=r"unique over all sets; got '0\.jpg' in .*test_set\.p again"):
        convert(write(tmp_path, train=one_set(0), test=one_set(0)), tmp_path / "out", "x")
