"""Are pickles of CE and MMT, and the matrices of VSE-infinity, converted, and malformed ones refused?"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.datasets.conversion import vse_infinity
from lossscope.datasets.conversion.msrvtt import Kind, convert
from lossscope.datasets.formats.ragged import RaggedArrays
from lossscope.datasets.msrvtt import MSRVTT
from lossscope.errors import InputError
from tests.each import each

FACES = {
    "video0": np.ones((2, 3)),
    "video1": np.float64("nan"),
    "video2": np.arange(3, dtype=np.float32),
    "video3": np.full((1, 3), np.nan),
}


def write_pickle(path: Path, content: object) -> Path:
    path.write_bytes(pickle.dumps(content))
    return path


def test_an_expert_becomes_rows_and_missing_videos_have_none(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    source = write_pickle(tmp_path / "a.pickle", FACES)
    count = convert("expert", source, tmp_path / "i3d.i3d.0", lambda *step: calls.append(step))
    assert (count, calls[-1]) == (4, (4, 4))
    arrays = RaggedArrays.open(tmp_path / "i3d.i3d.0")
    assert arrays.width == 3
    assert arrays.take("video0").tolist() == [[1, 1, 1]] * 2
    assert arrays.take("video2").tolist() == [[0, 1, 2]]
    assert [len(arrays.take(name)) for name in ("video1", "video3", "never")] == [0, 0, 0]
    assert np.isnan(arrays.times("video0")).all()


def test_everything_converted_is_read_as_one_data_set(tmp_path: Path) -> None:
    (tmp_path / "features").mkdir()
    convert(
        "expert",
        write_pickle(tmp_path / "a", {f"video{k}": np.ones((k + 1, 4)) for k in range(3)}),
        tmp_path / "features/face.x",
    )
    texts = {f"video{k}": [["a", "first", str(k)], "a second"] for k in range(3)}
    assert convert("captions", write_pickle(tmp_path / "a", texts), tmp_path / "raw_videodatainfo.json") == 6
    chosen = {"video1": np.int64(1), "video2": [0]}
    assert convert("chosen", write_pickle(tmp_path / "a", chosen), tmp_path / "jsfusion_val_caption_idx.json") == 2
    words = {f"video{k}": [np.ones((3, 2)), np.zeros((2, 2))] for k in range(3)}
    assert convert("words", write_pickle(tmp_path / "a", words), tmp_path / "words") == 6
    (tmp_path / "val_list_jsfusion.txt").write_text("video1\nvideo2\n")
    data = MSRVTT(tmp_path, held=0, words=tmp_path / "words")
    test, train = data.split("test"), data.split("train")
    assert test.captions == ["a second", "a first 2"]
    assert train.captions == ["a first 0", "a second"]
    assert test.words is not None
    assert [value.shape for value in test.words.take(np.array([0, 1]))] == [(2, 2), (3, 2)]
    assert test.images.shape["face.x"] == (30, 4)  # type: ignore[call-overload]


@each("kind, content, message", [
    ("expert", {}, "must hold an entry for each video"),
    ("expert", [], "must be an object"),
    ("expert", {"a": np.ones((2, 3)), "b": np.ones((2, 4))}, r"must be of one width; got 3 \(a\) and 4 \(b\)"),
    ("expert", {"a": float("nan")}, "got nothing but NaN"),
    ("expert", {"a": "text"}, "'a' of .* must be an array .* got str"),
    ("expert", {"a": 5.0}, "got float"),
    ("expert", {"a": np.ones((1, 2, 3))}, "must be an array"),
    ("expert", {"a": np.array(["x"])}, "must be an array"),
    ("expert", {"a": np.array([[1, np.nan]])}, "must be finite and of 32 bits, or begin with NaN"),
    ("expert", {5: np.ones((2, 3))}, "must have texts as names; got 5"),
    ("words", {"a": 5}, "'a' of .* must be a list"),
    ("captions", {"a": [["x", 5]]}, "caption 0 of 'a' .* must be text"),
    ("captions", {"a": "x"}, "must be a list"),
    ("chosen", {"a": -1}, "must be the number of a caption; got -1"),
    ("chosen", {"a": [1, 2]}, "must be the number of a caption"),
    ("chosen", {"a": True}, "must be the number of a caption"),
    ("chosen", {"a": 10**5000}, "it holds an integer of 2077 bytes"),
    ("expert", {"a": np.full((2, 3), 1e300)}, "must be finite and of 32 bits"),
    ("expert", {"a\ud800": np.ones((2, 3))}, "texts must be of letters of Unicode"),
    ("captions", {"a": ["x\ud800"]}, "texts must be of letters of Unicode"),
])  # fmt: skip
def test_malformed_pickles_are_refused(kind: Kind, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        convert(kind, write_pickle(tmp_path / "a", content), tmp_path / "out" / "x")
    assert not (tmp_path / "out" / "x.json").exists()


def write_npy(path: Path, content: Any) -> Path:
    np.save(path, content, allow_pickle=True)
    return path


def test_a_saved_similarity_matrix_becomes_a_dump(tmp_path: Path) -> None:
    sims = np.random.default_rng(0).random((3, 15))
    source = write_npy(tmp_path / "r.npy", {"npts": 3, "sims": sims})
    assert vse_infinity.convert(source, tmp_path / "out.npz") == (3, 15)
    with np.load(tmp_path / "out.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["similarity"], sims.astype(np.float32))
        assert arrays["caption_image"].tolist() == [row // 5 for row in range(15)]


@each("content, message", [
    (np.ones((3, 15)), "must hold one pickled dict"),
    (np.array([{}, {}]), "must hold one pickled dict"),
    ([], "must hold one pickled dict"),
    ({"npts": 3}, "must have the key 'sims'"),
    ({"npts": 3, "sims": np.ones((3, 14))}, r"must be floats, \(npts, 5 npts\); got float64 \(3, 14\) for npts 3"),
    ({"npts": "3", "sims": np.ones((3, 15))}, "for npts '3'"),
    ({"npts": 1, "sims": np.full((1, 5), np.nan)}, "must be finite"),
    ({"npts": 1, "sims": pickle.loads}, r"got _pickle\.loads, which was not run"),
])  # fmt: skip
def test_malformed_matrices_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        vse_infinity.convert(write_npy(tmp_path / "r.npy", content), tmp_path / "out.npz")
    assert not (tmp_path / "out.npz").exists()


def test_a_matrix_cut_off_or_no_npy_is_refused(tmp_path: Path) -> None:
    whole = write_npy(tmp_path / "r.npy", {"npts": 1, "sims": np.ones((1, 5))}).read_bytes()
    for content, message in (
        (whole[:-4], "must be a whole pickle"),
        (whole[:5], "must be a .npy"),
        (b"x" * 99, "must be a .npy"),
    ):
        (tmp_path / "r.npy").write_bytes(content)
        with pytest.raises(InputError, match=message):
            vse_infinity.convert(tmp_path / "r.npy", tmp_path / "out.npz")
