"""Is COCO's format read, with one file per split or one file split by hash, and is invalid input refused?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.base import Dataset
from lossscope.datasets.coco import Coco
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from tests.each import each

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
ONE = {"file": "captions.json", "folder": "images", "size": 4}


def document(numbers: range, captions: int = 6) -> dict[str, list[dict[str, Any]]]:
    """Return a document whose annotations are not in the order of the images, like COCO's."""
    pairs = [(number, k) for k in range(captions) for number in numbers]
    return {
        "images": [{"id": number, "file_name": f"{number}.png", "width": 6} for number in numbers],
        "annotations": [{"id": 100 * n + k, "image_id": n, "caption": f"Text {n} {k}.\n"} for n, k in pairs],
    }


def write(root: Path, file: str, folder: str, numbers: range, **changes: Any) -> Path:
    (root / folder).mkdir(parents=True)
    for number in numbers:
        Image.new("RGB", (6, 4), (number, 0, 0)).save(root / folder / f"{number}.png")
    (root / file).parent.mkdir(exist_ok=True)
    (root / file).write_text(json.dumps({**document(numbers), **changes}))
    return root


@pytest.fixture
def single(tmp_path: Path) -> Path:
    return write_single(tmp_path)


def write_single(path: Path) -> Path:
    return write(path, "captions.json", "images", range(60))


def coco(root: Path, **fields: Any) -> Coco:
    return Coco(root, **{**ONE, **fields})


def test_each_file_is_a_split(tmp_path: Path) -> None:
    for name, numbers in (("val", range(3)), ("train", range(3, 8)), ("minival", range(8, 9))):
        write(tmp_path, f"annotations/captions_{name}2014.json", f"images/{name}2014", numbers)
    data = Coco(tmp_path, size=4)
    assert isinstance(data, Dataset)
    assert data.splits() == ("train", "val", "minival")
    split = data.split("train")
    assert split.image_ids == ["3", "4", "5", "6", "7"]
    assert split.captions[5:7] == ["Text 4 0.", "Text 4 1."]
    assert split.caption_ids[5:7] == ["400", "401"]
    assert split.caption_image.tolist() == [row // 5 for row in range(25)]
    assert split.images.take(np.array([4, 0]))[:, 0, 0, 0].tolist() == [7, 3]


def test_the_layout_of_2017(tmp_path: Path) -> None:
    write(tmp_path, "annotations/captions_val2017.json", "val2017", range(2))
    spec = f'coco:root="{tmp_path}",file=annotations/captions_{{split}}2017.json,folder={{split}}2017'
    data = build("datasets", spec)
    assert data.splits() == ("val",)
    assert len(data.split("val").images) == 2
    assert build("datasets", spec_of(data)) == data


def test_one_file_is_split_by_hash(single: Path) -> None:
    data = coco(single)
    parts = {name: data.split(name).image_ids for name in data.splits()}
    assert list(parts) == ["train", "val", "test", "all"]
    assert sorted(parts["train"] + parts["val"] + parts["test"]) == sorted(parts["all"])
    assert min(map(len, parts.values())) > 0
    assert 40 < len(parts["train"]) < 56
    assert (parts["val"][:2], parts["test"][:2]) == (["30", "37"], ["0", "20"])


def test_an_image_stays_in_its_split_in_another_file(single: Path) -> None:
    before = coco(single).split("val").image_ids
    (single / "captions.json").write_text(json.dumps(document(range(10, 40))))
    assert coco(single).split("val").image_ids == [name for name in before if 10 <= int(name) < 40]


def test_zero_captions_means_all(single: Path) -> None:
    assert [len(coco(single, captions=k).split("all").captions) for k in (0, 2)] == [360, 120]


def test_skip_leaves_out_pictures(single: Path) -> None:
    (single / "images" / "7.png").write_text("no picture")
    split = coco(single, on_error="skip").split("all")
    assert (len(split.images), len(split.captions)) == (59, 295)
    assert split.skipped == (str(single / "images" / "7.png"),)
    (single / "images" / "7.png").unlink()
    with pytest.raises(InputError, match=r"7\.png must be a picture file"):
        coco(single).split("all")


def test_an_empty_split_is_refused_with_advice(tmp_path: Path) -> None:
    data = coco(write(tmp_path, "captions.json", "images", range(1)))
    with pytest.raises(InputError, match=r"must hold at least one image; got none .* use the split 'all'"):
        data.split("val")


def test_for_unknown_splits_the_splits_are_listed(single: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be one of train, val, test, all; got 'dev'"):
        coco(single).split("dev")
    with pytest.raises(InputError, match=r"captions_\{split\}2014\.json \(none found\); got 'val'"):
        Coco(tmp_path).split("val")


@each("changes, message", [
    ({"images": {}}, "'images' of .* must be a list"),
    ({"annotations": None}, "'annotations' of .* must be a list; got None"),
    ({"images": [{"file_name": "1.png"}]}, "image 0 of .* must have the key 'id'"),
    ({"images": [{"id": 1.5, "file_name": "1.png"}]}, r"must be a whole number or text; got 1\.5"),
    ({"images": [{"id": 1}]}, "must have the key 'file_name'"),
    ({"images": [{"id": 1, "file_name": "1.png"}] * 2}, "must be unique; got 1 twice"),
    ({"annotations": [{"image_id": 99, "id": 1, "caption": "a"}]}, "must be the id of one of its images; got 99"),
    ({"annotations": [{"image_id": 1, "id": 1, "caption": 5}]}, "'caption' of annotation 0 of .* must be text"),
    ({"annotations": []}, r"0\.png must have at least one caption"),
    ({"images": [], "annotations": []}, "must hold at least one image"),
])  # fmt: skip
def test_malformed_documents_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    root = write(tmp_path, "captions.json", "images", range(3), **changes)
    with pytest.raises(InputError, match=message):
        coco(root).split("all")


@each("content", ["", '{"images": [{"id": 1', "captions"])
def test_files_that_are_no_json_are_refused(content: str, tmp_path: Path) -> None:
    single = write_single(tmp_path)
    (single / "captions.json").write_text(content)
    with pytest.raises(InputError, match="must be whole JSON"):
        coco(single).split("all")


@pytest.mark.skipif(not (SHARED / "coco_mini").is_dir(), reason="no real COCO pictures beside the checkout")
def test_real_pictures_are_read() -> None:
    data = Coco(SHARED / "coco_mini", **{**ONE, "size": 32}, on_error="skip")
    split = data.split("all")
    assert (len(split.images), len(split.captions), split.skipped) == (159, 795, ())
    assert split.images.take(np.arange(159)).shape == (159, 3, 32, 32)
    assert sum(len(data.split(name).images) for name in ("train", "val", "test")) == 159
