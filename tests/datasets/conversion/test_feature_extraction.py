"""Are features of a whole data set written, resumed after an interruption, and never mixed?"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.datasets.base import Dataset
from lossscope.datasets.conversion import feature_extraction
from lossscope.datasets.conversion.feature_extraction import Extraction
from lossscope.datasets.features.base import Extract
from lossscope.datasets.features.hog_grid import HogGrid
from lossscope.datasets.precomp import Precomp
from lossscope.datasets.scenes import Scenes
from lossscope.errors import InputError

SCENES = Scenes(train=10, val=4, test=3, size=16)


@dataclass
class Means:
    """A backbone of the mean of each channel, interrupted after `most` pictures."""

    most: int = 10**6
    bad: bool = False
    calls: list[int] = field(default_factory=list)  # rows of each call
    identity: str = "means"

    def open(self, device: str) -> Extract:
        def extract(pixels: Any) -> Any:
            if sum(self.calls) + len(pixels) > self.most:
                raise KeyboardInterrupt
            self.calls.append(len(pixels))
            means = pixels.reshape(len(pixels), 3, -1).mean(2).astype(np.float32)
            return means * np.nan if self.bad else means

        return extract


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_extraction, "PART", 4)
    monkeypatch.setattr(feature_extraction, "_BATCH", 3)


def work(
    out: Path, backbone: Any, dataset: Dataset = SCENES, names: tuple[str, ...] = (), data: str = "s"
) -> Extraction:
    return Extraction(data, dataset, backbone, out, names)


def test_precomp_reads_what_was_written(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    names = work(tmp_path / "out", Means()).run(lambda *step: calls.append(step))
    assert names == ["train", "val", "test"]
    assert calls[:3] == [("features of train", 4, 10), ("features of train", 8, 10), ("features of train", 10, 10)]
    for name in names:
        before, after = SCENES.split(name), Precomp(tmp_path / "out").split(name)
        assert after.captions == before.captions
        assert after.image_ids == before.image_ids
        assert np.array_equal(after.caption_image, before.caption_image)
        pixels = before.images.take(np.arange(len(before.images)))
        assert np.array_equal(after.images.take(np.arange(len(after.images))), Means().open("cpu")(pixels))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "manifest.json",
        *(f"{name}_{file}" for name in names for file in ("ims.npy", "ims.crc32.npy", "ids.txt", "caps.txt")),
    }  # fmt: skip


def test_an_interruption_loses_at_most_a_part(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path, Means(most=9)).run()
    assert Precomp(tmp_path).splits() == ()
    resumed = Means()
    work(tmp_path, resumed).run()
    assert sum(resumed.calls) == 17 - 8
    assert len(Precomp(tmp_path).split("train").images) == 10
    third = Means(most=0)
    work(tmp_path, third).run()
    assert third.calls == []


def test_splits_can_be_added_but_no_other_extraction(tmp_path: Path) -> None:
    work(tmp_path, Means(), names=("test",)).run()
    assert Precomp(tmp_path).splits() == ("test",)
    work(tmp_path, Means(), names=("val",)).run()
    assert Precomp(tmp_path).splits() == ("val", "test")
    assert set(json.loads((tmp_path / "manifest.json").read_text())["splits"]) == {"val", "test"}
    for other in (
        work(tmp_path, Means(identity="others")),
        work(tmp_path, Means(), data="t"),
        work(tmp_path, Means(), Scenes(train=10, val=4, test=3, size=16, seed=1)),
    ):
        with pytest.raises(InputError, match="must be new or of the same extraction; it is another"):
            other.run()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["sha256"]
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "splits": "train"}))
    with pytest.raises(InputError, match=r"'splits' of .* must be an object; got 'train'"):
        work(tmp_path, Means()).run()
    (tmp_path / "full" / "x").mkdir(parents=True)
    with pytest.raises(InputError, match="full must be new or empty"):
        work(tmp_path / "full", Means()).run()


def test_the_number_of_captions_must_be_five_or_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"5 captions each, or all of them 1.*; got 3 of 'train-00000' in 'train'"):
        work(tmp_path / "a", Means(), Scenes(train=4, val=4, test=4, size=16, captions=3)).run()
    assert not (tmp_path / "a").exists()
    single = Scenes(train=4, val=4, test=4, size=16, captions=1)
    work(tmp_path / "b", Means(), single).run()
    assert Precomp(tmp_path / "b").split("val").captions == single.split("val").captions


def test_features_are_no_pictures_and_splits_must_exist(tmp_path: Path) -> None:
    work(tmp_path / "a", Means()).run()
    with pytest.raises(InputError, match=r"items of 'train' must be pictures, \(3, H, W\); got \(3,\)"):
        work(tmp_path / "b", Means(), Precomp(tmp_path / "a")).run()
    with pytest.raises(InputError, match="splits must be of train, val, test; got dev"):
        work(tmp_path / "b", Means(), names=("dev",)).run()


def test_features_must_be_finite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="features must be finite; got NaN or infinity for 'train-00000'"):
        work(tmp_path, Means(bad=True)).run()


def test_hog_grid_features_of_scenes_have_a_row_per_region(tmp_path: Path) -> None:
    work(tmp_path, HogGrid(2, 2)).run()
    assert Precomp(tmp_path).split("train").images.shape == (4, 136)
