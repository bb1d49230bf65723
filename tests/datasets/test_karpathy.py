"""Is Karpathy's format read in all layouts, and is invalid input skipped or refused?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.base import Dataset
from lossscope.datasets.karpathy import Karpathy
from lossscope.errors import InputError
from tests.each import each

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def entry(number: int, split: str, captions: int = 6, **more: Any) -> dict[str, Any]:
    sentences = [{"raw": f" Text {number} {k} .", "sentid": 10 * number + k} for k in range(captions)]
    return {"filename": f"{number}.png", "split": split, "sentences": sentences, **more}


SPLITS = ("train", "train", "val", "test", "restval", "train")


def write(root: Path, folder: str = "images", **changes: Any) -> Path:
    """Write a folder of six pictures; changes replace the fields of the document."""
    (root / folder).mkdir(parents=True)
    for number in range(len(SPLITS)):
        Image.new("RGB", (6, 4), (number * 40, 0, 0)).save(root / folder / f"{number}.png")
    images = [entry(number, split) for number, split in enumerate(SPLITS)]
    (root / "dataset_toy.json").write_text(json.dumps({"images": images, **changes}))
    return root


def test_a_split_has_its_images_and_captions(tmp_path: Path) -> None:
    data = Karpathy(write(tmp_path), "toy", size=4)
    split = data.split("train")
    assert isinstance(data, Dataset)
    assert data.splits() == ("train", "val", "test")
    assert split.image_ids == ["0.png", "1.png", "4.png", "5.png"]
    assert split.captions[5:7] == ["Text 1 0 .", "Text 1 1 ."]
    assert split.caption_ids[5:7] == ["10", "11"]
    assert split.caption_image.tolist() == [row // 5 for row in range(20)]
    assert split.images.take(np.array([2, 0]))[:, 0, 0, 0].tolist() == [160, 0]
    assert split.skipped == ()


def test_restval_can_be_a_split_of_its_own(tmp_path: Path) -> None:
    data = Karpathy(write(tmp_path), "toy", size=4, restval=False)
    assert data.splits() == ("train", "val", "test", "restval")
    assert data.split("restval").image_ids == ["4.png"]
    assert len(data.split("train").image_ids) == 3


def test_zero_captions_means_all(tmp_path: Path) -> None:
    write(tmp_path)
    counts = [len(Karpathy(tmp_path, "toy", captions=k).split("val").captions) for k in (0, 2, 5, 9)]
    assert counts == [6, 2, 5, 6]


@each("folder", ["images", "val2014", "images/val2014", "toy-images"])
def test_pictures_are_read_in_every_layout(folder: str, tmp_path: Path) -> None:
    images = [entry(number, "train", filepath="val2014") for number in range(3)]
    split = Karpathy(write(tmp_path, folder, images=images), "toy", size=4).split("train")
    assert split.images.take(np.array([2]))[0, 0, 0, 0] == 80


def test_for_missing_pictures_the_places_tried_are_listed(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Karpathy(write(tmp_path, "elsewhere"), "toy").split("val")
    for tried in ("images/2.png", "toy-images/2.png"):
        assert tried in str(caught.value)


def test_a_missing_picture_is_refused_at_once(tmp_path: Path) -> None:
    (write(tmp_path) / "images" / "1.png").unlink()
    with pytest.raises(InputError, match=r"1\.png must be a picture file; got No such file .* on_error=skip"):
        Karpathy(tmp_path, "toy").split("train")


def test_a_damaged_picture_is_refused_when_it_is_used(tmp_path: Path) -> None:
    (write(tmp_path) / "images" / "1.png").write_text("no picture")
    split = Karpathy(tmp_path, "toy").split("train")
    assert split.images.take(np.array([0])).shape == (1, 3, 224, 224)
    with pytest.raises(InputError, match=r"1\.png must be a whole picture"):
        split.images.take(np.array([1]))


def test_skip_leaves_out_pictures_with_their_captions(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "images" / "1.png").write_text("no picture")
    (tmp_path / "images" / "4.png").unlink()
    split = Karpathy(tmp_path, "toy", size=4, on_error="skip").split("train")
    assert split.image_ids == ["0.png", "5.png"]
    assert split.caption_image.tolist() == [0] * 5 + [1] * 5
    assert split.captions[5] == "Text 5 0 ."
    assert split.images.take(np.array([1]))[0, 0, 0, 0] == 200
    assert split.skipped == tuple(str(tmp_path / "images" / name) for name in ("1.png", "4.png"))


def test_skip_must_leave_a_picture(tmp_path: Path) -> None:
    (write(tmp_path) / "images" / "2.png").write_text("no picture")
    with pytest.raises(InputError, match="must hold at least one image; got none that is readable among 1"):
        Karpathy(tmp_path, "toy", on_error="skip").split("val")


def test_the_fingerprint_depends_on_options_and_files(tmp_path: Path) -> None:
    def fingerprints() -> list[str]:
        options: list[dict[str, Any]] = [{}, {"size": 8}, {"captions": 1}, {"crop": False}, {"restval": False}]
        return [Karpathy(tmp_path, "toy", **option).split("train").fingerprint for option in options]

    write(tmp_path)
    before = fingerprints()
    assert len(set(before)) == len(before)
    assert fingerprints() == before
    Image.new("RGB", (60, 40)).save(tmp_path / "images" / "0.png")
    assert not set(fingerprints()) & set(before)


def test_for_unknown_splits_the_splits_are_listed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be one of train, val, test; got 'dev'"):
        Karpathy(write(tmp_path), "toy").split("dev")


@each("content, message", [
    ('{"images": [', "must be whole JSON"),
    ("hello", "must be whole JSON"),
    ("[]", "must be an object"),
    ("{}", "must have the key 'images'; got none"),
    ('{"images": 3}', "'images' of .* must be a list; got 3"),
    ('{"images": [7]}', "image 0 of .* must be an object; got 7"),
    ('{"images": [{"split": "val"}]}', "image 0 of .* must have the key 'filename'; got 'split'"),
    ('{"images": [{"split": 1}]}', "'split' of image 0 of .* must be text; got 1"),
    (json.dumps({"images": [entry(1, "val") | {"sentences": [{}]}]}), "sentence 0 of image 0 .*'raw'"),
    (json.dumps({"images": [entry(1, "val", captions=0)]}), r"1\.png must have at least one caption"),
    (json.dumps({"images": [entry(1, "val"), entry(1, "val")]}), r"image ids .* got '1\.png' 2 times"),
    ('{"images": []}', "must be one of none; got 'val'"),
])  # fmt: skip
def test_malformed_documents_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (write(tmp_path) / "dataset_toy.json").write_text(content)
    with pytest.raises(InputError, match=message):
        Karpathy(tmp_path, "toy").split("val")


def test_repeated_sentids_are_refused_and_missing_ones_counted(tmp_path: Path) -> None:
    first, second = entry(1, "val"), entry(2, "val")
    path = write(tmp_path, images=[first, {**second, "sentences": first["sentences"]}]) / "dataset_toy.json"
    with pytest.raises(InputError, match="caption ids of 'val' must be unique; got '10' 2 times"):
        Karpathy(tmp_path, "toy").split("val")
    path.write_text(json.dumps({"images": [first | {"sentences": [{"raw": "a"}, {"raw": "b"}]}]}))
    assert Karpathy(tmp_path, "toy").split("val").caption_ids == ["1.png#0", "1.png#1"]


def test_a_missing_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"dataset_toy\.json must exist; there is no such file"):
        Karpathy(tmp_path, "toy").splits()


@pytest.mark.skipif(not (SHARED / "flickr8k").is_dir(), reason="the real Flickr8k is not beside the checkout")
def test_flickr8k_is_read_as_published() -> None:
    data = Karpathy(SHARED / "flickr8k", "flickr8k", size=64)
    sizes = {name: len(data.split(name).captions) for name in data.splits()}
    assert sizes == {"train": 30000, "val": 5000, "test": 5000}
    pixels = data.split("test").images.take(np.arange(32))
    assert pixels.shape == (32, 3, 64, 64)
    assert 20 < pixels.std() < 120
