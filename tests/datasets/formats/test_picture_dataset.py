"""Has a data set of picture files its options, and does it make squares as `fit` or the older flags say?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.base import require_split
from lossscope.datasets.formats.decoding import Fit
from lossscope.datasets.formats.picture_dataset import CaptionedPicture, PictureDataset, choose_fit
from lossscope.errors import InputError
from tests.each import each


@each("fit, crop, usual, expected", [
    (None, True, True, "square"),
    (None, False, True, "squeeze"),
    ("short-side", True, True, "short-side"),
    ("squeeze", False, True, "squeeze"),
    ("square", True, False, "square"),
    ("short-side", False, False, "short-side"),
])  # fmt: skip
def test_fit_goes_before_a_flag_at_its_default(fit: Fit | None, crop: bool, usual: bool, expected: Fit) -> None:
    assert choose_fit(fit, crop, usual) == expected


@each("crop, usual, by_flag", [(False, True, "squeeze"), (True, False, "square")])
def test_a_flag_that_says_otherwise_is_refused(crop: bool, usual: bool, by_flag: str) -> None:
    with pytest.raises(InputError, match=f"fit must be {by_flag}, as crop or squeeze says; got short-side. Leave one"):
        choose_fit("short-side", crop, usual)


@dataclass(frozen=True)
class Folders(PictureDataset):
    root: Path
    size: int = 8

    def splits(self) -> tuple[str, ...]:
        return ("test",)

    def pictures(self, name: str) -> list[CaptionedPicture]:
        require_split(name, self.splits())
        files = sorted(self.root.glob("*/*.png"))
        return [CaptionedPicture(file.stem, file, ((f"{file.stem}#0", file.parent.name),)) for file in files]


def test_a_data_set_is_its_options_and_its_pictures(tmp_path: Path) -> None:
    for name, value in (("cat", 40), ("dog", 90)):
        (tmp_path / name).mkdir()
        Image.new("RGB", (12, 10), (value, 0, 0)).save(tmp_path / name / f"{value}.png")
    split = Folders(tmp_path).split("test")
    assert (split.captions, split.image_ids, split.images.shape) == (["cat", "dog"], ["40", "90"], (3, 8, 8))
    pixels = split.images.take(np.array([1]))
    assert isinstance(pixels, np.ndarray) and pixels[0, 0].tolist() == [[90] * 8] * 8
    with pytest.raises(InputError, match="split must be one of test; got 'val'"):
        Folders(tmp_path).split("val")
    with pytest.raises(InputError, match="folders:size must be at least 1 pixel; got 0"):
        Folders(tmp_path, 0)
