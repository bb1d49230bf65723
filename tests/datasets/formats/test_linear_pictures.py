"""Are pictures interpolated linearly, between pixel centres, and are files that are no pictures refused?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lossscope.datasets.formats.decoding import Preprocessing
from lossscope.datasets.formats.linear_resizing import resize_linear
from lossscope.datasets.formats.pictures import PictureFiles
from lossscope.errors import InputError
from tests.authors.rule import write_pictures
from tests.each import each


def linear(size: int) -> Preprocessing:
    return Preprocessing(size, "squeeze", "cv2")


@each("height, width, size", [(61, 97, 32), (20, 33, 64), (1, 5, 8), (40, 80, 40), (7, 7, 7)])
def test_pixels_are_those_of_torchs_interpolation_without_antialiasing(height: int, width: int, size: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.float32)
    planes = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None]
    expected = torch.nn.functional.interpolate(planes, (size, size), mode="bilinear")[0].numpy()
    assert np.allclose(resize_linear(pixels, size).transpose(2, 0, 1), expected, atol=1e-2)


def test_pictures_are_floats_up_to_one(tmp_path: Path) -> None:
    files = write_pictures(tmp_path, [(30, 20), (10, 40)])
    pictures = PictureFiles(files, linear(16))
    pixels = pictures.take(np.array([1, 0]))
    assert (len(pictures), pictures.shape, pixels.shape, pixels.dtype) == (2, (3, 16, 16), (2, 3, 16, 16), np.float32)
    assert 0 <= pixels.min() < 0.2
    assert 0.8 < pixels.max() <= 1
    assert np.array_equal(pixels[0], pictures.take(np.array([1]))[0])


def test_a_file_that_is_no_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.png").write_text("no picture")
    with pytest.raises(InputError, match=r"0\.png must be a whole picture; got UnidentifiedImageError"):
        PictureFiles([tmp_path / "0.png"], linear(16)).take(np.array([0]))
    with pytest.raises(InputError, match=r"1\.png must be a whole picture; got no such file: .* with on_error=skip"):
        PictureFiles([tmp_path / "1.png"], linear(16)).take(np.array([0]))


def test_a_palette_with_transparent_bytes_is_no_warning(tmp_path: Path) -> None:
    Image.new("P", (4, 4)).save(tmp_path / "0.png", transparency=b"\x00\x80")
    assert PictureFiles([tmp_path / "0.png"], linear(2)).take(np.array([0])).shape == (1, 3, 2, 2)


def test_a_picture_whose_resized_rows_are_too_many_is_refused(tmp_path: Path) -> None:
    Image.new("1", (1, 140_000)).save(tmp_path / "0.png")
    with pytest.raises(
        InputError, match=r"0\.png must be of at most .*; got 1 x 140000, resized to 512 x 512: replace"
    ):
        PictureFiles([tmp_path / "0.png"], linear(512)).take(np.array([0]))
