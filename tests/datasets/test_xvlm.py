"""Are X-VLM's lists read with a record per caption or per picture, and are captions cleaned as in the original?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.base import Dataset
from lossscope.datasets.xvlm import XVLM
from lossscope.errors import InputError
from lossscope.text.xvlm_captions import clean_caption
from tests.each import each

TRAIN = [
    {"image": "a.png", "caption": "A first - one.", "image_id": "x"},
    {"image": "b.png", "caption": "Of b .", "image_id": 7},
    {"image": "a.png", "caption": "A second one", "image_id": "x"},
]
TEST = [
    {"image": "b.png", "caption": ["One.", "Two.", "Three.", "Four.", "Five."]},
    {"image": "a.png", "caption": ["Six."]},
]


def write(root: Path, records: Any, split: str = "train") -> Path:
    for row, name in enumerate("ab"):
        Image.new("RGB", (6, 4), (10 * row, 0, 0)).save(root / f"{name}.png")
    (root / f"coco_{split}.json").write_text(json.dumps(records))
    return root


def test_training_records_of_one_image_id_are_one_image(tmp_path: Path) -> None:
    data = XVLM(write(tmp_path, TRAIN), "coco", size=4)
    split = data.split("train")
    assert isinstance(data, Dataset)
    assert split.image_ids == ["x", "7"]
    assert split.captions == ["A first - one.", "A second one", "Of b ."]
    assert split.caption_ids == ["x#0", "x#1", "7#0"]
    assert split.caption_image.tolist() == [0, 0, 1]
    assert split.images.take(np.array([1]))[0, 0, 0, 0] == 10


def test_records_with_several_captions(tmp_path: Path) -> None:
    write(tmp_path, TEST, "test")
    data = XVLM(tmp_path, "coco", size=4)
    assert data.splits() == ("test",)
    split = data.split("test")
    assert split.image_ids == ["b.png", "a.png"]
    assert split.captions == ["One.", "Two.", "Three.", "Four.", "Five.", "Six."]
    assert split.caption_image.tolist() == [0] * 5 + [1]
    assert len(XVLM(tmp_path, "coco", size=4, captions=2).split("test").captions) == 3


def cleaned_slowly(text: str, words: int) -> str:
    text = re.sub(r"([,.'!?\"()*#:;~])", "", text.lower())
    text = text.replace("-", " ").replace("/", " ").replace("<person>", "person")
    text = re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")
    return " ".join(text.split(" ")[:words])


@each("text", ["It's a <person>'s T-shirt/hat!", 'A "big"   dog; (two: #3) ~*~.', "one two three four"])
def test_cleaning(text: str) -> None:
    assert clean_caption(text, 3) == cleaned_slowly(text, 3)
    assert clean_caption(text, 30) == cleaned_slowly(text, 30)


def test_captions_are_cleaned_by_option(tmp_path: Path) -> None:
    split = XVLM(write(tmp_path, TRAIN), "coco", size=4, words=30).split("train")
    assert split.captions[0] == "a first one"


@each("records, message", [
    ({}, "coco_train.json must be a list; got {}"),
    ([{"caption": "x"}], "record 0 of .* must have the key 'image'"),
    ([{"image": "a.png"}], "record 0 of .* must have the key 'caption'"),
    ([{"image": "a.png", "caption": 5}], "'caption' of record 0 of .* must be text; got 5"),
    ([{"image": "a.png", "caption": ["x", 5]}], "caption 1 of record 0 of .* must be text"),
    ([*TRAIN, {"image": "b.png", "caption": "x", "image_id": "x"}], "must be that of image_id x; got 'b.png'"),
    ([{"image": "gone.png", "caption": "x"}], "gone.png must be a picture file"),
    ([{"image": "a.png", "caption": []}], "must have at least one caption"),
    (["x"], "record 0 of .* must be an object"),
    ([], "must hold at least one image"),
])  # fmt: skip
def test_malformed_records_are_refused(records: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        XVLM(write(tmp_path, records), "coco", size=4).split("train")


def test_files_cut_off_and_missing_splits(tmp_path: Path) -> None:
    write(tmp_path, TRAIN)
    with pytest.raises(InputError, match="split of xvlm must be one of train; got 'val'"):
        XVLM(tmp_path, "coco").split("val")
    with pytest.raises(InputError, match=r"files like .*none_train\.json \(none found\)"):
        XVLM(tmp_path, "none").split("train")
    (tmp_path / "coco_train.json").write_text('[{"image": ')
    with pytest.raises(InputError, match="must be whole JSON"):
        XVLM(tmp_path, "coco").split("train")
    with pytest.raises(InputError, match="words must be at least 1"):
        XVLM(tmp_path, "coco", words=-1)
