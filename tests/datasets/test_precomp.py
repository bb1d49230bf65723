"""Are precomputed features read with one or five captions per image, and are malformed files refused?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.datasets.base import Dataset
from lossscope.datasets.formats.redundant_rows import Redundant
from lossscope.datasets.precomp import Precomp
from lossscope.errors import InputError
from tests.each import each


def write(root: Path, split: str = "train", images: int = 4, captions: int = 20, shape: tuple[int, ...] = (3,)) -> Path:
    values = np.arange(images * int(np.prod(shape)), dtype=np.float32).reshape(images, *shape)
    np.save(root / f"{split}_ims.npy", values)
    (root / f"{split}_caps.txt").write_text("".join(f" Text {row} .\n" for row in range(captions)), "utf-8")
    return root


def test_five_captions_share_an_image(tmp_path: Path) -> None:
    data = Precomp(write(tmp_path))
    split = data.split("train")
    assert isinstance(data, Dataset)
    assert (len(split.images), split.images.shape, split.captions[7]) == (4, (3,), "Text 7 .")
    assert split.caption_image.tolist() == [row // 5 for row in range(20)]
    assert (split.image_ids[3], split.caption_ids[19]) == ("train-00003", "train-00003-4")
    features = split.images.take(np.array([2, 0]))
    assert features.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert features.dtype == np.float32


def test_as_many_rows_as_captions_have_one_caption_each(tmp_path: Path) -> None:
    split = Precomp(write(tmp_path, images=20, shape=(2, 3))).split("train")
    assert split.caption_image.tolist() == list(range(20))
    assert split.images.shape == (2, 3)
    assert split.images.take(np.array([1])).shape == (1, 2, 3)


@settings(deadline=None, max_examples=30)
@given(images=st.integers(1, 12), captions=st.integers(0, 61))
def test_other_numbers_are_refused(images: int, captions: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = Precomp(write(tmp_path_factory.mktemp("p"), images=images, captions=captions))
    if captions in (images, 5 * images):
        assert len(data.split("train").captions) == captions
    else:
        with pytest.raises(InputError, match=rf"train_caps\.txt must have {images} or {5 * images} lines"):
            data.split("train")


def test_splits_are_those_present_and_dev_is_val(tmp_path: Path) -> None:
    for name in ("testall", "dev", "train"):
        write(tmp_path, name)
    (tmp_path / "test_ims.npy").write_bytes(b"")
    data = Precomp(tmp_path)
    assert data.splits() == ("train", "dev", "testall")
    assert data.split("val").captions == data.split("dev").captions
    write(tmp_path, "val", images=2, captions=10)
    assert (len(data.split("val").images), len(data.split("dev").images)) == (2, 4)
    with pytest.raises(InputError, match="must be one of train, dev, val, testall; got 'test'"):
        data.split("test")
    with pytest.raises(InputError, match=r"\(none found\); got 'train'"):
        Precomp(tmp_path / "nowhere").split("train")


@each("first, images, captions", [(0, 4, 20), (10, 2, 10), (7, 2, 7), (99, 4, 20)])
def test_dev_may_be_cut(first: int, images: int, captions: int, tmp_path: Path) -> None:
    write(tmp_path, "dev")
    write(tmp_path, "train")
    data = Precomp(tmp_path, dev_first=first)
    for name in ("dev", "val"):
        split = data.split(name)
        assert (len(split.images), len(split.captions)) == (images, captions)
    assert len(data.split("train").captions) == 20


@each("per_caption", [False, True])
def test_ids_name_images_or_captions(per_caption: bool, tmp_path: Path) -> None:
    ids = [name for name in "abcd" for _ in range(5 if per_caption else 1)]
    (write(tmp_path) / "train_ids.txt").write_text("\n".join(ids))
    split = Precomp(tmp_path).split("train")
    assert split.image_ids == ["a", "b", "c", "d"]
    assert split.caption_ids[5:7] == ["b-0", "b-1"]


def test_ids_of_repeated_images_get_row_numbers(tmp_path: Path) -> None:
    write(tmp_path, images=4, captions=4)
    (tmp_path / "train_ids.txt").write_text("a\na\nb\nb\n")
    assert Precomp(tmp_path).split("train").image_ids == ["a@0", "a@1", "b@2", "b@3"]


def test_the_number_of_ids_must_fit(tmp_path: Path) -> None:
    (write(tmp_path) / "train_ids.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"train_ids\.txt must have 4 or 20 lines; got 2"):
        Precomp(tmp_path).split("train")


@each("bad", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_refused_when_they_are_used(bad: float, tmp_path: Path) -> None:
    values = np.ones((4, 2, 3), dtype=np.float32)
    values[2, 1, 0] = bad
    np.save(write(tmp_path) / "train_ims.npy", values)
    split = Precomp(tmp_path).split("train")
    assert split.images.take(np.array([0, 1, 3])).shape == (3, 2, 3)
    with pytest.raises(InputError, match=r"train_ims\.npy must be finite; got NaN or infinity in row 2"):
        split.images.take(np.array([3, 2]))


def test_floats_too_great_for_float32_are_refused(tmp_path: Path) -> None:
    np.save(write(tmp_path) / "train_ims.npy", np.full((4, 3), 1e300))
    with pytest.raises(InputError, match="in row 1"):
        Precomp(tmp_path).split("train").images.take(np.array([1]))


def test_half_floats_become_float32(tmp_path: Path) -> None:
    np.save(write(tmp_path) / "train_ims.npy", np.ones((4, 3), dtype=np.float16))
    assert Precomp(tmp_path).split("train").images.take(np.array([1])).dtype == np.float32


@each("values, message", [
    (np.ones((4, 3), dtype=np.int64), "must hold floats; got int64"),
    (np.ones(4, dtype=np.float32), r"must have the shape \(N, d\) or \(N, R, d\), .*; got \(4,\)"),
    (np.ones((0, 3), dtype=np.float32), "train_ims.npy must"),
    (np.array([{}, {}]), "must be a whole .npy file"),
])  # fmt: skip
def test_arrays_of_another_shape_or_type_are_refused(
    values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], message: str, tmp_path: Path
) -> None:
    np.save(write(tmp_path) / "train_ims.npy", values, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        Precomp(tmp_path).split("train")


@each("keep", [0, 3, 60, -1])
def test_cut_off_arrays_are_refused(keep: int, tmp_path: Path) -> None:
    path = write(tmp_path) / "train_ims.npy"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"train_ims\.npy must be a whole \.npy file"):
        Precomp(tmp_path).split("train")


def test_archives_and_text_that_is_not_utf8_are_refused(tmp_path: Path) -> None:
    with open(write(tmp_path) / "train_ims.npy", "wb") as file:
        np.savez(file, a=np.ones(3))
    with pytest.raises(InputError, match=r"must be a whole \.npy file"):
        Precomp(tmp_path).split("train")
    (write(tmp_path) / "train_caps.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match="must be UTF-8 text; got a foreign byte at 3"):
        Precomp(tmp_path).split("train")


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    (write(tmp_path, images=3, captions=0) / "train_caps.txt").write_bytes("a\u2028b\r\n\r\nc\x0cd\r\n".encode())
    assert Precomp(tmp_path).split("train").captions == ["a\u2028b", "", "c\x0cd"]


def test_the_fingerprint_covers_features_captions_and_ids(tmp_path: Path) -> None:
    fingerprints = {Precomp(write(tmp_path)).split("train").fingerprint}
    (tmp_path / "train_ids.txt").write_text("a\nb\nc\nd\n")
    fingerprints.add(Precomp(tmp_path).split("train").fingerprint)
    (tmp_path / "train_caps.txt").write_text("other\n" * 20)
    fingerprints.add(Precomp(tmp_path).split("train").fingerprint)
    np.save(tmp_path / "train_ims.npy", np.ones((4, 3), dtype=np.float32))
    fingerprints.add(Precomp(tmp_path).split("train").fingerprint)
    assert len(fingerprints) == 4


def write_in_fives(root: Path, images: int = 3, shape: tuple[int, ...] = (4,)) -> Path:
    write(root, images=5 * images, captions=5 * images, shape=shape)
    rows = np.load(root / "train_ims.npy")
    np.save(root / "train_ims.npy", np.repeat(rows[:images], 5, axis=0))
    return root


@each("redundant", ["auto", "true"])
def test_rows_that_are_equal_in_fives_are_one_image(redundant: Redundant, tmp_path: Path) -> None:
    split = Precomp(write_in_fives(tmp_path), redundant=redundant).split("train")
    assert split.caption_image.tolist() == [row // 5 for row in range(15)]
    assert split.images.take(np.array([1, 2])).tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert split.notices == (
        "train_ims.npy holds each image 5 times, once per caption: merged to 3 images with 5 captions each, as the "
        "authors evaluate it; redundant=false keeps 15",
    )


def test_rows_in_fives_are_kept_when_asked(tmp_path: Path) -> None:
    split = Precomp(write_in_fives(tmp_path), redundant="false").split("train")
    assert split.caption_image.tolist() == list(range(15))
    assert split.notices == ()


def test_rows_in_fives_that_differ_are_kept_and_said_or_the_first_is_taken(tmp_path: Path) -> None:
    rows = np.load(write_in_fives(tmp_path) / "train_ims.npy")
    rows[9, 0] += 1
    np.save(tmp_path / "train_ims.npy", rows)
    split = Precomp(tmp_path).split("train")
    assert len(split.images) == 15
    assert "rows 5 to 9 are not equal: each row is an image of its own" in split.notices[0]
    split = Precomp(tmp_path, redundant="true").split("train")
    assert split.images.take(np.array([1])).tolist() == [[4, 5, 6, 7]]
    assert split.notices == ("of every 5 rows of train_ims.npy the first is taken; rows 5 to 9 are not equal",)


def test_rows_of_other_numbers_cannot_be_redundant(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"once per caption; got 4 rows and 20 captions"):
        Precomp(write(tmp_path), redundant="true").split("train")


@each("split, first, said", [("dev", 0, True), ("dev", 5000, False), ("test", 0, False)])
def test_more_captions_of_dev_than_the_authors_evaluate_are_said(
    split: str, first: int, said: bool, tmp_path: Path
) -> None:
    data = Precomp(write(tmp_path, split, images=1001, captions=5005, shape=(1,)), dev_first=first)
    assert any("evaluate the first 5000: dev_first=5000" in text for text in data.split(split).notices) is said


def test_ids_of_rows_in_fives_are_one_a_image_or_a_caption(tmp_path: Path) -> None:
    write_in_fives(tmp_path)
    (tmp_path / "train_ids.txt").write_text("".join(f"{row // 5}\n" for row in range(15)))
    assert Precomp(tmp_path).split("train").image_ids == ["0", "1", "2"]
