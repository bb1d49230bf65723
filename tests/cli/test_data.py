"""`lossscope data`: each command as its help says, then the data set that reads what it wrote."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from lossscope.registry import build
from tests.command_line import lossscope

SCENES = "scenes:train=6,val=3,test=3,size=32"


def run_data(*words: str) -> Result:
    return lossscope("data", *words)


def done(*words: str) -> str:
    result = run_data(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def msrvtt(videos: int = 6) -> None:
    annotations = {
        "videos": [{"video_id": f"video{k}", "split": "train"} for k in range(videos)],
        "sentences": [{"video_id": f"video{k}", "caption": f"a dog {k}"} for k in range(videos)],
    }
    Path("m").mkdir()
    Path("m/all_videodatainfo.json").write_text(json.dumps(annotations))
    Path("m/MSRVTT_JSFUSION_test.csv").write_text("key;vid_key;video_id;sentence\nret0;msr5;video5;a cat\n")


def test_features_of_pictures_and_the_same_command_again() -> None:
    words = ("features", "--data", SCENES, "--out", "f", "--backbone", "hog-grid:rows=2,columns=2", "--device", "cpu")
    assert done(*words) == "f\n"
    before = {path: path.read_bytes() for path in Path("f").iterdir()}
    assert done(*words) == "f\n"
    assert {path: path.read_bytes() for path in Path("f").iterdir()} == before
    split = build("datasets", "precomp:root=f").split("val")
    assert (split.images.shape, len(split.captions)) == ((4, 136), 15)
    assert split.captions == build("datasets", SCENES).split("val").captions


def test_generated_features_and_words_make_a_data_set_of_videos() -> None:
    msrvtt()
    result = run_data("synthetic-experts", "m/features", "--captions", "m", "--width", "8", "--frames", "4")
    assert result.exit_code == 0, result.stderr
    assert "generated features of 6 videos, from their captions: no measurement of any video" in result.stderr
    assert done("random-words", "m/words", "--captions", "m", "--width", "5", "-q") == "m/words\n"
    data = build("datasets", "msrvtt:root=m,held=1,words=m/words")
    assert [len(data.split(name).images) for name in data.splits()] == [4, 1, 1]
    assert data.split("test").captions == ["a cat"]
    assert data.split("test").words.take(np.array([0]))[0].shape == (2, 5)
    assert data.split("train").images.shape["s3d"] == (30, 8)


def test_pickles_of_others() -> None:
    Path("e.p").write_bytes(pickle.dumps({"video0": np.ones((2, 3))}))
    assert done("msrvtt", "expert", "e.p", "face") == "face\n"
    assert np.load("face.npy").shape == (2, 3)
    Path("train_set.p").write_bytes(
        pickle.dumps(
            {
                "images": {1: {"image": b"bytes", "filename": "a.jpg", "caption_ids": [5, 6]}},
                "captions": {5: {"caption": "x", "imgid": 1}},
            }
        )
    )
    result = run_data("ecir", ".", "k", "--name", "n")
    assert "1 images, 1 captions; dropped 1 caption ids without a caption and 0 images without any" in result.stderr
    assert Path("k/images/a.jpg").read_bytes() == b"bytes"
    np.save("r.npy", np.array({"npts": 1, "sims": np.ones((1, 5))}), allow_pickle=True)
    assert done("similarity", "r.npy", "r.npz") == "r.npz\n"
    assert np.load("r.npz")["similarity"].shape == (1, 5)


def test_conversions_show_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress functions must fit what calls them: lines and bars appear on terminals alone."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    msrvtt()
    Path("e.p").write_bytes(pickle.dumps({"video0": np.ones((2, 3))}))
    assert "face" in done("msrvtt", "expert", "e.p", "face")
    assert "m/words" in done("random-words", "m/words", "--captions", "m", "--width", "5")
    assert "m/f" in done("synthetic-experts", "m/f", "--captions", "m", "--width", "8", "--frames", "4")
    assert "f" in done("features", "--data", SCENES, "--out", "f", "--backbone", "hog-grid:rows=2,columns=2")


def test_code_in_a_pickle_is_refused_without_a_traceback() -> None:
    Path("e.p").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    result = run_data("msrvtt", "expert", "e.p", "face")
    assert result.exit_code == 1
    assert "got os.system, which was not run: do not trust this file" in result.stderr
    assert not Path("ran").exists()


def test_an_interrupt_says_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lossscope.datasets.conversion.feature_extraction.Extraction.run", stop)
    result = run_data("features", "--data", SCENES, "--out", "f")
    assert (result.exit_code, result.stderr) == (130, "Interrupted; what was finished is kept.\n")
