"""Are VSE-infinity's pictures read by their ids, and are malformed files refused?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.base import Dataset
from lossscope.datasets.grids import Grids
from lossscope.errors import InputError
from tests.each import each


def write(root: Path, images: int = 3, repeated: bool = False, split: str = "train") -> Path:
    (root / "precomp").mkdir(exist_ok=True)
    (root / "images" / "sub").mkdir(parents=True, exist_ok=True)
    for row in range(images):
        Image.new("RGB", (8, 4), (10 * row, 0, 0)).save(root / "images" / "sub" / f"{row}.png")
    (root / "id_mapping.json").write_text(json.dumps({str(70 + row): f"sub/{row}.png" for row in range(images)}))
    ids = [str(70 + row) for row in range(images) for _ in range(5 if repeated else 1)]
    (root / "precomp" / f"{split}_ids.txt").write_text("".join(f"{id}\n" for id in ids))
    (root / "precomp" / f"{split}_caps.txt").write_text("".join(f"Text {k} .\n" for k in range(5 * images)))
    return root


@each("repeated", [False, True])
def test_ids_are_one_a_picture_or_one_a_caption(repeated: bool, tmp_path: Path) -> None:
    data = Grids(write(tmp_path, repeated=repeated), size=4)
    split = data.split("train")
    assert isinstance(data, Dataset)
    assert split.image_ids == ["70", "71", "72"]
    assert split.captions[5] == "Text 5 ."
    assert split.caption_ids[5] == "71-0"
    assert split.caption_image.tolist() == [row // 5 for row in range(15)]
    assert split.images.take(np.array([2, 1]))[:, 0, 0, 0].tolist() == [20, 10]


def test_the_whole_picture_is_squeezed_by_default(tmp_path: Path) -> None:
    write(tmp_path)
    picture = np.zeros((4, 8, 3), np.uint8)
    picture[:, :2] = 255
    Image.fromarray(picture).save(tmp_path / "images" / "sub" / "0.png")
    whole, middle = (
        Grids(tmp_path, size=4, squeeze=squeeze).split("train").images.take(np.array([0])) for squeeze in (True, False)
    )
    assert whole[0, 0, 0].max() > 200
    assert middle.max() == 0


def test_val_is_dev_and_dev_may_be_cut(tmp_path: Path) -> None:
    data = Grids(write(tmp_path, split="dev"), size=4, dev_first=10)
    assert data.splits() == ("dev",)
    assert len(data.split("val").images) == 2
    with pytest.raises(InputError, match=r"split of grids must be one of .*; got 'test', has dev"):
        data.split("test")


@each("file, content, message", [
    ("precomp/train_ids.txt", "70\n71\n99\n", r"ids of .*train_ids.txt must be in id_mapping.json; got '99', 1"),
    ("precomp/train_ids.txt", "70\n71\n", "one line for each or for each five of .*; got 2 for 15"),
    ("precomp/train_caps.txt", "a\nb\n", "got 3 for 2"),
    ("id_mapping.json", '{"70": 5}', "'70' of .*id_mapping.json must be text; got 5"),
    ("id_mapping.json", "[]", "must be an object"),
    ("images/sub/1.png", None, r"1\.png must be a picture file"),
    ("id_mapping.json", None, "id_mapping.json must exist"),
])  # fmt: skip
def test_malformed_files_are_refused(file: str, content: str | None, message: str, tmp_path: Path) -> None:
    write(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=message):
        Grids(tmp_path, size=4).split("train")


def test_a_picture_that_cannot_be_read_may_be_left_out(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "images/sub/1.png").write_bytes(b"no picture")
    split = Grids(tmp_path, size=4, on_error="skip").split("train")
    assert split.image_ids == ["70", "72"]
    assert len(split.skipped) == 1


def test_pictures_can_be_those_of_cv2(tmp_path: Path) -> None:
    write(tmp_path)
    pillow, cv2 = (Grids(tmp_path, size=4, resample=resample).split("train") for resample in ("bilinear", "cv2"))
    assert cv2.images.take(np.array([1])).dtype == np.float32
    assert (cv2.images.shape, len(cv2.images)) == ((3, 4, 4), 3)
    assert np.allclose(255 * cv2.images.take(np.array([0, 2])), pillow.images.take(np.array([0, 2])), atol=1e-3)
    assert cv2.fingerprint != pillow.fingerprint
    with pytest.raises(InputError, match="squeeze must be true for resample=cv2"):
        Grids(tmp_path, resample="cv2", squeeze=False)
