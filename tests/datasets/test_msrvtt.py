"""Is MSR-VTT read by the official lists and in both layouts, and are malformed files refused?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lossscope.datasets.base import Dataset
from lossscope.datasets.formats.ragged import RowsByName, write_ragged
from lossscope.datasets.formats.videos import select_frames
from lossscope.datasets.msrvtt import MSRVTT
from lossscope.errors import InputError
from lossscope.io.rows_on_disk import checksum_file
from tests.each import each

VIDEOS = [f"video{row}" for row in range(10)]
VIDEO_SPLITS = ["train"] * 6 + ["validate"] * 2 + ["test"] * 2


def captions_of(row: int) -> list[str]:
    return [f"text {row} {k}" for k in range(3)]


def annotate(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    videos = [
        {"video_id": video, "split": split, "id": row}
        for row, (video, split) in enumerate(zip(VIDEOS, VIDEO_SPLITS, strict=True))
    ]
    sentences = [
        {"video_id": VIDEOS[row], "caption": captions_of(row)[k], "sen_id": 10 * k + row}
        for k in range(3)
        for row in range(10)
    ]
    for name, rows in (("train_val", range(8)), ("test", range(8, 10))):
        names = {VIDEOS[row] for row in rows}
        document = {
            "info": {}, "videos": [v for v in videos if v["video_id"] in names],
            "sentences": [s for s in sentences if s["video_id"] in names],
        }  # fmt: skip
        (root / f"{name}_videodatainfo.json").write_text(json.dumps(document))
    return root


def csv(root: Path, rows: list[tuple[str, str]]) -> None:
    lines = ["key;vid_key;video_id;sentence", *(f"ret{k};msr{k};{v};{text}" for k, (v, text) in enumerate(rows))]
    (root / "MSRVTT_JSFUSION_test.csv").write_text("\r\n".join(lines) + "\r\n")


def frames_of(expert: str, row: int) -> np.ndarray[Any, Any]:
    """Return the frames of a video: row + 1 of `rgb`, and of `face` two, or none for odd rows."""
    width, count = (4, row + 1) if expert == "rgb" else (2, 0 if row % 2 else 2)
    return (100 * row + np.arange(count * width, dtype=np.float32)).reshape(count, width)


def arrays(root: Path) -> None:
    for expert, width in (("rgb", 4), ("face", 2)):
        frames = {video: frames_of(expert, row) for row, video in enumerate(VIDEOS)}
        lengths = {video: len(value) for video, value in frames.items()}

        def times(video: str) -> np.ndarray[Any, Any]:
            return np.arange(int(video[5:]) + 1) + 0.5

        rows = RowsByName(lengths, width, frames.__getitem__, times if expert == "rgb" else None)
        (root / "features").mkdir(exist_ok=True)
        write_ragged(root / "features" / expert, rows)


def mult_h5(root: Path) -> None:
    for row, video in enumerate(VIDEOS):
        path = root / "mult" / "v" / "i" / "d" / f"{video}.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            file["features.rgb"] = frames_of("rgb", row)
            if row % 2 == 0:
                file["features.face"] = frames_of("face", row)
            elif row == 1:
                file["features.face"] = np.full((1, 2), np.nan, np.float32)
            elif row == 3:
                file["features.face"] = np.zeros((0, 2), np.float32)
            file["features.s3d"] = np.ones((2, 3), np.float32)
            file["features_t.s3d"] = np.array([[0, 1], [1, 3]], np.float32)
            for k, text in enumerate(captions_of(row)):
                file[f"raw_captions.{k}"] = np.array([word.encode() for word in text.split()])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path)


def write_root(path: Path) -> Path:
    annotate(path)
    arrays(path)
    csv(path, [("video9", "text 9 1"), ("video8", "said otherwise")])
    return path


def test_1k_a_reads_its_test_from_the_csv_and_trains_on_all_other_videos(root: Path) -> None:
    data = MSRVTT(root, held=0)
    assert isinstance(data, Dataset)
    test = data.split("test")
    assert (test.image_ids, test.captions) == (["video9", "video8"], ["text 9 1", "said otherwise"])
    assert test.caption_ids == ["video9#1", "video8#csv"]
    assert data.split("val").image_ids == test.image_ids
    train = data.split("train")
    assert train.image_ids == VIDEOS[:8]
    assert train.captions[:4] == ["text 0 0", "text 0 1", "text 0 2", "text 1 0"]
    assert train.caption_image.tolist() == [row // 3 for row in range(24)]
    assert MSRVTT(root, held=0, captions=1).split("train").captions == [f"text {row} 0" for row in range(8)]


def test_val_videos_are_taken_from_the_training_list_and_stay_the_same(root: Path) -> None:
    (root / "train_list_jsfusion.txt").write_text("".join(f"{video}\n" for video in VIDEOS[:7]))
    train, val = (MSRVTT(root, held=3).split(name).image_ids for name in ("train", "val"))
    assert sorted(train + val) == VIDEOS[:7]
    assert len(val) == 3
    (root / "train_list_jsfusion.txt").write_text("".join(f"{video}\n" for video in reversed(VIDEOS[:7])))
    assert set(MSRVTT(root, held=3).split("val").image_ids) == set(val)
    with pytest.raises(InputError, match="held must leave training videos; got 7 of 7"):
        MSRVTT(root, held=7).split("train")


def test_1k_a_without_csv_reads_the_lists_of_mmt(root: Path) -> None:
    (root / "MSRVTT_JSFUSION_test.csv").unlink()
    (root / "val_list_jsfusion.txt").write_text("video8\nvideo9\n")
    (root / "jsfusion_val_caption_idx.json").write_text('{"video8": 2, "video9": 0}')
    test = MSRVTT(root).split("test")
    assert test.captions == ["text 8 2", "text 9 0"]
    (root / "jsfusion_val_caption_idx.json").write_text('{"video8": 3, "video9": 0}')
    with pytest.raises(InputError, match="must be among those of the video; got 3 of video8, which has 3"):
        MSRVTT(root).split("test")


def test_full_and_1k_b(root: Path) -> None:
    data = MSRVTT(root, lists="full")
    assert [data.split(name).image_ids for name in data.splits()] == [VIDEOS[:6], VIDEOS[6:8], VIDEOS[8:]]
    (root / "test_list_full.txt").write_text("video9\n")
    assert MSRVTT(root, lists="full").split("test").image_ids == ["video9"]
    (root / "train_list_miech.txt").write_text("video0\nvideo1\nvideo2\n")
    (root / "val_list_miech.txt").write_text("video5\nvideo4\n")
    second = MSRVTT(root, lists="1k-b", held=1)
    assert second.split("test").captions == ["text 5 0", "text 4 0"]
    assert len(second.split("train").image_ids) == 2


def test_items_are_padded_features_lengths_and_times_by_name(root: Path) -> None:
    images = MSRVTT(root, lists="full", frames=3).split("train").images
    assert images.shape == {
        "face": (3, 2), "face.length": (), "face.time": (3,), "rgb": (3, 4), "rgb.length": (), "rgb.time": (3,),
        "face.max": (2,), "rgb.max": (4,),
    }  # fmt: skip
    taken = images.take(np.array([4, 1]))
    assert {name: value.shape[1:] for name, value in taken.items()} == images.shape
    assert taken["rgb"].dtype == np.float32
    assert taken["face.length"].tolist() == [2, 0]
    assert taken["rgb.length"].tolist() == [3, 2]
    assert np.array_equal(taken["rgb"][0], frames_of("rgb", 4)[[0, 2, 4]])
    assert taken["rgb.time"][0].tolist() == [0.5, 2.5, 4.5]
    assert np.array_equal(taken["rgb"][1], [*frames_of("rgb", 1), np.zeros(4)])
    assert np.isnan(taken["rgb.time"][1, 2])
    assert not taken["face"][1].any()
    assert np.isnan(taken["face.time"]).all()
    assert np.array_equal(taken["rgb.max"][0], frames_of("rgb", 4).max(axis=0))  # of all frames, the unused ones too
    assert not taken["face.max"][1].any()


def test_random_frames_are_a_sorted_subset_and_always_the_same(root: Path) -> None:
    rows = select_frames(40, 30, "random")
    assert len(set(rows.tolist())) == 30
    assert rows.tolist() == sorted(rows.tolist())
    assert np.array_equal(rows, select_frames(40, 30, "random"))
    assert select_frames(5, 30, "random").tolist() == select_frames(5, 30, "even").tolist() == list(range(5))
    assert select_frames(40, 3, "first").tolist() == [0, 1, 2]
    video = MSRVTT(root, lists="full", frames=3, pick="random").split("train").images.take(np.array([5]))
    assert np.array_equal(video["rgb"][0], frames_of("rgb", 5)[select_frames(6, 3, "random")])


def test_experts_can_be_chosen(root: Path) -> None:
    assert "face" not in MSRVTT(root, experts="rgb").split("test").images.shape
    assert set(MSRVTT(root, experts="rgb+face").split("test").images.shape) >= {"rgb", "face"}
    with pytest.raises(InputError, match=r"among those of .*features \(face, rgb\); got no ocr"):
        MSRVTT(root, experts="ocr+rgb").split("test")


def test_the_files_of_mmt_give_the_same_items(root: Path) -> None:
    mult_h5(root)
    data = MSRVTT(root, lists="full", layout="mult-h5", features="mult", experts="face+rgb", frames=4)
    ours = MSRVTT(root, lists="full", frames=4).split("train").images.take(np.arange(6))
    theirs = data.split("train").images.take(np.arange(6))
    for name in ("rgb", "rgb.length", "face", "face.length", "face.time"):
        assert np.array_equal(ours[name], theirs[name], equal_nan=True), name
    assert theirs["rgb.time"][2, :3].tolist() == pytest.approx([0.1, 0.3, 0.5])


def test_a_file_of_mmt_is_opened_once_for_all_experts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mult_h5(root)
    images = MSRVTT(root, lists="full", layout="mult-h5", features="mult").split("train").images
    opened: list[str] = []

    class Watched(h5py.File):  # type: ignore[misc]
        def __init__(self, path: Path, mode: str) -> None:
            opened.append(path.stem)
            super().__init__(path, mode)

    monkeypatch.setattr(h5py, "File", Watched)
    assert set(images.take(np.array([4, 1]))) >= {"face", "rgb", "s3d"}
    assert opened == ["video4", "video1"]


def test_times_and_captions_in_the_files_of_mmt(root: Path) -> None:
    mult_h5(root)
    data = MSRVTT(root, layout="mult-h5", features="mult", annotations="mult-h5", held=0)
    split = data.split("train")
    assert split.captions[:2] == ["text 0 0", "text 0 1"]
    kinds = ("", ".length", ".time", ".max")
    assert set(split.images.shape) == {f"{e}{s}" for e in ("face", "rgb", "s3d") for s in kinds}
    assert split.images.take(np.array([0]))["s3d.time"][0, :2].tolist() == [0.5, 2.0]
    with pytest.raises(InputError, match="as the annotations state no splits"):
        MSRVTT(root, lists="full", layout="mult-h5", features="mult", annotations="mult-h5").split("train")


def test_vectors_of_words(root: Path) -> None:
    (root / "MSRVTT_JSFUSION_test.csv").unlink()
    ids = {f"video{row}#{k}": k + 1 for row in range(10) for k in range(3)}
    write_ragged(root / "words", RowsByName(ids, 5, lambda id: np.full((ids[id], 5), int(id[5]))))
    words = MSRVTT(root, lists="full", words=root / "words").split("val").words
    assert words is not None
    assert (words.width, len(words)) == (5, 6)
    assert [value.tolist() for value in words.take(np.array([4, 0]))] == [[[7.0] * 5] * 2, [[6.0] * 5]]
    csv(root, [("video9", "not among them")])
    with pytest.raises(InputError, match=r"words must hold the words of every caption; got none for 'video9#csv' \(1"):
        MSRVTT(root, words=root / "words").split("test")


def _edit(file: str, key: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        document = json.loads((root / file).read_text())
        document.pop("sha256", None)  # whoever writes such files has no checksum
        document[key] = change(document[key])
        (root / file).write_text(json.dumps(document))

    return edit


def _replace(file: Path, values: np.ndarray[Any, Any]) -> None:
    """Write other rows, without the checksums of the first."""
    checksum_file(file).unlink(missing_ok=True)
    np.save(file, values)


BAD: list[tuple[Callable[[Path], Any], str]] = [
    (lambda r: (r / "features/rgb.npy").write_bytes(b"x"), r"rgb\.npy must be a whole \.npy file"),
    (lambda r: _replace(r / "features/face.npy", np.zeros((3, 2), np.float32)), "must be within the 3 there are"),
    (lambda r: _replace(r / "features/rgb.npy", np.zeros(55, np.float32)), r"must hold floats, \(total, d\)"),
    (lambda r: _replace(r / "features/rgb.times.npy", np.zeros(3)), "must have 55 times"),
    (_edit("features/rgb.json", "items", lambda v: {**v, "video0": [0]}), r"must be \[first row, rows\]; got \[0\]"),
    (_edit("features/rgb.json", "items", lambda v: {**v, "video0": [-1, 2]}), "must be within"),
    (_edit("features/rgb.json", "items", lambda v: {**v, "video0": [0, "2"]}), "must be a whole number"),
    (_edit("features/rgb.json", "schema", lambda v: "x"), "must be an index of lossscope.ragged/1; got schema 'x'"),
    (_edit("features/rgb.json", "items", lambda v: {}), r"at least one expert; got none of 'video1' \(3 of 6\)"),
    (lambda r: [p.unlink() for p in (r / "features").iterdir()], r"no EXPERT\.json at all"),
    (lambda r: [p.unlink() for p in r.glob("*info.json")], "annotations must be files like .*; got none"),
    (_edit("train_val_videodatainfo.json", "sentences", lambda v: [*v[1:], {}]), "sentence 23 of .* must have the key"),
    (_edit("train_val_videodatainfo.json", "sentences", lambda v: v[1::8]), r"got none for 'video0' \(5 of them\)"),
    (
        _edit("train_val_videodatainfo.json", "videos", lambda v: [{"video_id": "a", "split": "x"}]),
        "'split' of video 0 of .* must be one of train, validate, val, test; got 'x'",
    ),
]  # fmt: skip


@each("damage, message", BAD)
def test_malformed_files_are_refused(damage: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    root = write_root(tmp_path)
    damage(root)
    with pytest.raises(InputError, match=message):
        MSRVTT(root, lists="full").split("train")


@each("rows, message", [
    ([], "must list videos; got none"),
    ([("video9", "a"), ("video9", "b")], "line 3 of .* of a new video"),
    ([("video9", "")], "line 2 of"),
])  # fmt: skip
def test_a_malformed_csv_is_refused(rows: list[tuple[str, str]], message: str, tmp_path: Path) -> None:
    root = write_root(tmp_path)
    csv(root, rows)
    with pytest.raises(InputError, match=message):
        MSRVTT(root).split("test")


def test_features_that_are_not_finite_are_refused_when_they_are_used(root: Path) -> None:
    values = np.load(root / "features/rgb.npy")
    values[1] = np.inf
    _replace(root / "features/rgb.npy", values)
    images = MSRVTT(root, lists="full").split("train").images
    images.take(np.array([0]))
    with pytest.raises(InputError, match=r"rows of 'video1' in .*rgb\.npy must be finite"):
        images.take(np.array([1]))


def _h5(key: str, value: Any) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        with h5py.File(root / "mult/v/i/d/video1.h5", "a") as file:
            del file[key]
            file[key] = value

    return damage


@each("damage, message", [
    (_h5("features.rgb", np.ones((2, 5), np.float32)), r"features.rgb of .*video1\.h5 must be \(T, 4\) finite"),
    (_h5("features.rgb", np.array([[1, 2, 3, np.nan]])), "finite numbers"),
    (_h5("features.rgb", np.ones(4, np.float32)), r"must be \(T, 4\)"),
    (_h5("features.rgb", "text"), r"video1\.h5 must be a whole HDF5 file"),
    (_h5("features_t.s3d", np.ones((3, 2))), r"features_t.s3d of .* must be \(2, 2\); got \(3, 2\)"),
    (lambda r: (r / "mult/v/i/d/video1.h5").write_bytes(b"no h5"), r"video1\.h5 must be a whole HDF5 file"),
    (lambda r: (r / "mult/v/i/d/video1.h5").unlink(), "got none of 'video1'"),
])  # fmt: skip
def test_malformed_h5_files_are_refused(damage: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    root = write_root(tmp_path)
    mult_h5(root)
    damage(root)
    with pytest.raises(InputError, match=message):
        MSRVTT(root, lists="full", layout="mult-h5", features="mult", experts="rgb+face+s3d").split(
            "train"
        ).images.take(np.arange(6))


def test_missing_lists_and_unknown_splits_and_options_are_refused(root: Path) -> None:
    with pytest.raises(InputError, match=r"val_list_miech\.txt must exist"):
        MSRVTT(root, lists="1k-b").split("test")
    with pytest.raises(InputError, match="split must be one of train, val, test; got 'dev'"):
        MSRVTT(root).split("dev")
    with pytest.raises(InputError, match="frames must be at least 1"):
        MSRVTT(root, frames=0)
    mult_h5(root)
    with pytest.raises(InputError, match=r"experts must be in files like .*; got no ocr"):
        MSRVTT(root, layout="mult-h5", features="mult", experts="ocr").split("test")


def test_the_lists_of_mmt_are_read_where_those_of_ce_are_not_there(tmp_path: Path) -> None:
    arrays(annotate(tmp_path))
    (tmp_path / "train_list_miech.txt").write_text("video0\nvideo1\n")
    (tmp_path / "test_list_miech.txt").write_text("video5\n")
    (tmp_path / "test_list.txt").write_text("video3\n")
    (tmp_path / "train_list_full.txt").write_text("video1\n")
    (tmp_path / "train_list.txt").write_text("video0\n")
    assert MSRVTT(tmp_path, "1k-b", held=0).split("test").image_ids == ["video5"]
    assert MSRVTT(tmp_path, "full").split("test").image_ids == ["video3"]
    assert MSRVTT(tmp_path, "full").split("train").image_ids == ["video1"]


def test_stored_times_of_experts_without_times_are_not_read(tmp_path: Path) -> None:
    mult_h5(annotate(tmp_path))
    with h5py.File(tmp_path / "mult" / "v" / "i" / "d" / "video4.h5", "a") as file:
        file["features_t.rgb"], file["features_t.face"] = np.full((5, 2), 7.0), np.full((2, 2), 7.0)
    taken = MSRVTT(tmp_path, "full", "mult-h5", "mult").split("train").images.take(np.array([4]))
    assert isinstance(taken, dict)
    assert taken["rgb.time"][0, :5] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert np.isnan(taken["face.time"]).all()
