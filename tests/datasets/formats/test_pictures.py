"""Are picture files decoded, cropped and cached, and other files refused?"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.formats.decoding import Fit, Preprocessing, Rgb
from lossscope.datasets.formats.picture_dataset import CaptionedPicture, build_picture_split
from lossscope.datasets.formats.pictures import PictureFiles
from lossscope.errors import InputError
from tests.each import each

ORDERS: tuple[Rgb, ...] = ("first", "last")


def picture(path: Path, width: int = 40, height: int = 20, colour: tuple[int, int, int] = (200, 0, 0)) -> Path:
    Image.new("RGB", (width, height), colour).save(path)
    return path


def rows(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [picture(tmp_path / f"{n}.png", colour=(n * 40, 0, 0)) for n in range(5)]


def test_pictures_are_in_the_order_of_the_rows(files: list[Path]) -> None:
    images = PictureFiles(files, Preprocessing(8))
    pixels = images.take(rows(3, 0, 3))
    assert (pixels.shape, pixels.dtype, images.shape, len(images)) == ((3, 3, 8, 8), np.uint8, (3, 8, 8), 5)
    assert pixels[:, 0, 0, 0].tolist() == [120, 0, 120]
    assert not pixels[:, 1:].any()
    assert images.take(rows()).shape == (0, 3, 8, 8)


def test_cropping_keeps_the_middle(tmp_path: Path) -> None:
    sides = np.zeros((10, 30, 3), dtype=np.uint8)
    sides[:, 10:20] = 255
    path = tmp_path / "stripe.png"
    Image.fromarray(sides).save(path)
    assert (Preprocessing(10, "square").decode(path) == 255).all()
    squeezed = Preprocessing(9, "squeeze").decode(path)
    assert (squeezed[0, 4, 0], squeezed[0, 4, 4], squeezed[0, 4, 8]) == (0, 255, 0)


@each(
    "sides, rounded, floor",
    [((10, 10), (0, 0), (0, 0)), ((12, 10), (1, 0), (1, 0)), ((13, 10), (2, 0), (1, 0)), ((10, 15), (0, 2), (0, 2))],
)
def test_the_middle_is_cut_out_after_the_short_side_is_resized(
    sides: tuple[int, int], rounded: tuple[int, int], floor: tuple[int, int], tmp_path: Path
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2 * sides[1], 2 * sides[0], 3), dtype=np.uint8)
    path = tmp_path / "noise.png"
    Image.fromarray(pixels).save(path)
    resized = np.asarray(Image.fromarray(pixels).resize(sides, Image.Resampling.BICUBIC))
    for fit, (left, top) in (("short-side", rounded), ("short-side-floor", floor)):
        expected = resized[top : top + 10, left : left + 10].transpose(2, 0, 1)
        assert np.array_equal(Preprocessing(10, fit, "bicubic").decode(path), expected)  # type: ignore[arg-type]


def test_the_long_side_is_rounded_down(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 44, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "noise.png")
    resized = np.asarray(Image.fromarray(pixels).resize((14, 10), Image.Resampling.BILINEAR))  # 10 · 44 / 30 = 14.67
    assert np.array_equal(
        Preprocessing(10, "short-side").decode(tmp_path / "noise.png"), resized[:, 2:12].transpose(2, 0, 1)
    )


@each("mode", ["L", "P", "RGBA", "LA", "1", "CMYK"])
def test_every_mode_becomes_rgb(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
    Image.new("RGB", (9, 9), (255, 255, 255)).convert(mode).save(path)
    assert (Preprocessing(4).decode(path) == 255).all()


def test_a_palette_with_transparent_bytes_is_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    Image.new("P", (4, 4)).save(path, transparency=b"\x00\x80")
    assert Preprocessing(4).decode(path).shape == (3, 4, 4)


def test_decoded_pictures_are_kept(files: list[Path]) -> None:
    images = PictureFiles(files, Preprocessing(8))
    calls: list[tuple[int, int]] = []
    images.load_all(lambda done, total: calls.append((done, total)))
    assert calls == [(5, 5)]
    before = images.take(rows(1, 2))
    for file in files:
        file.unlink()
    before[...] = 7
    assert images.take(rows(1, 2))[:, 0, 0, 0].tolist() == [40, 80]


def test_pictures_that_do_not_fit_in_memory_are_decoded_again(files: list[Path]) -> None:
    images = PictureFiles(files, Preprocessing(8), cache_bytes=100)
    images.load_all()
    assert not images.keeps
    assert images.take(rows(1))[0, 0, 0, 0] == 40
    files[1].unlink()
    with pytest.raises(InputError, match="no such file"):
        images.take(rows(1))
    assert images.readable_rows() == [0, 2, 3, 4]


@each("suffix", ["jpg", "png"])
def test_damaged_files_are_refused_by_name(suffix: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    cut, text, none = (tmp_path / f"{name}.{suffix}" for name in ("cut", "text", "none"))
    Image.fromarray(noise).save(cut)
    cut.write_bytes(cut.read_bytes()[:2000])
    text.write_text("no picture")
    for path in (cut, text, none):
        with pytest.raises(InputError, match=rf"{path.name} must be a whole picture; got .*: replace the file"):
            PictureFiles([path], Preprocessing(8)).take(rows(0))


def test_bombs_pipes_and_huge_files_are_refused_at_once(tmp_path: Path) -> None:
    bomb, pipe, huge = (tmp_path / name for name in ("bomb.png", "pipe.png", "huge.png"))
    Image.new("1", (8, 8)).save(bomb)
    chunk = b"IHDR" + struct.pack(">II", 20_000, 20_000) + bomb.read_bytes()[24:29]  # it states 400 million pixels
    bomb.write_bytes(bomb.read_bytes()[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + bomb.read_bytes()[33:])
    os.mkfifo(pipe)
    with open(huge, "wb") as file:
        file.truncate((1 << 28) + 1)
    for path, says in ((bomb, "exceeds limit of 178956970"), (pipe, "a pipe"), (huge, "more than 256 MB")):
        with pytest.raises(InputError, match=rf"{path.name} must be a whole picture; got .*{says}"):
            PictureFiles([path], Preprocessing(8)).take(rows(0))


@each("fit", ["short-side", "short-side-floor"])
def test_a_long_thin_picture_is_refused_before_it_is_resized(fit: Fit, tmp_path: Path) -> None:
    size = "1 x 60000, resized to 224 x 13440000"
    Image.new("1", (1, 60_000)).save(tmp_path / "thin.png")
    with pytest.raises(
        InputError, match=rf"thin\.png must be of at most 67108864 pixels .*; got {size}: .*on_error=skip"
    ):
        Preprocessing(224, fit).decode(tmp_path / "thin.png")
    assert not PictureFiles([tmp_path / "thin.png"], Preprocessing(224, fit)).readable_rows()
    assert Preprocessing(224, "square").decode(tmp_path / "thin.png").shape == (3, 224, 224)


def test_a_picture_is_refused_when_there_are_too_many_pixels_between_the_passes(tmp_path: Path) -> None:
    Image.new("1", (1, 140_000)).save(tmp_path / "thin.png")
    with pytest.raises(InputError, match="got 1 x 140000, resized to 512 x 512"):
        Preprocessing(512, "squeeze").decode(tmp_path / "thin.png")
    assert Preprocessing(224, "squeeze").decode(tmp_path / "thin.png").shape == (3, 224, 224)


def test_only_readable_files_are_kept_with_their_pixels(files: list[Path]) -> None:
    files[2].write_text("no picture")
    images = PictureFiles(files, Preprocessing(8))
    readable = images.readable_rows()
    assert readable == [0, 1, 3, 4]
    part = images.select(readable)
    files[4].unlink()
    assert part.paths == tuple(files[row] for row in readable)
    assert part.take(rows(3, 1))[:, 0, 0, 0].tolist() == [160, 40]


def test_bicubic_resampling_is_that_of_pillow(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 256, (40, 30, 3), dtype=np.uint8))
    picture.save(tmp_path / "a.png")
    decoded = {kind: Preprocessing(12, "square", kind).decode(tmp_path / "a.png") for kind in ("bilinear", "bicubic")}  # type: ignore[arg-type]
    expected = picture.resize((12, 12), Image.Resampling.BICUBIC, box=(0, 5, 30, 35))
    np.testing.assert_array_equal(decoded["bicubic"], np.asarray(expected).transpose(2, 0, 1))
    assert (decoded["bicubic"] != decoded["bilinear"]).any()


def test_a_picture_is_resized_in_its_own_mode_where_it_becomes_rgb_last(tmp_path: Path) -> None:
    dots = Image.fromarray(np.indices((40, 40)).sum(0) % 3 == 0)
    dots.save(tmp_path / "dots.png")
    first, last = (Preprocessing(9, "short-side", "bicubic", rgb).decode(tmp_path / "dots.png") for rgb in ORDERS)
    assert set(np.unique(last).tolist()) == {0, 255} != set(np.unique(first).tolist())
    expected = np.asarray(dots.resize((9, 9), Image.Resampling.BICUBIC).convert("RGB"))
    np.testing.assert_array_equal(last, expected.transpose(2, 0, 1))


@each("mode", ["L", "P", "RGBA", "LA", "1", "CMYK", "I;16", "I", "F"])
def test_every_mode_becomes_rgb_after_it_is_resized(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.png" if mode in ("P", "LA") else "x.tif")
    white = Image.new("RGB", (9, 9), (255, 255, 255))
    (white.convert(mode) if mode != "I;16" else Image.new("I;16", (9, 9), 255)).save(path)
    assert (Preprocessing(4, rgb="last").decode(path) == 255).all()


def test_the_order_is_kept_in_parts_and_only_the_last_is_in_fingerprints(tmp_path: Path) -> None:
    items = [CaptionedPicture("a", picture(tmp_path / "a.png"), (("0", "a dog"),))]
    plain, first, last = (
        build_picture_split("test", items, Preprocessing(8, "square", *more), 0, "skip")
        for more in ((), ("bilinear", "first"), ("bilinear", "last"))
    )
    assert plain.fingerprint == first.fingerprint != last.fingerprint
    assert isinstance(last.images, PictureFiles) and last.images.select([0]).preprocessing.rgb == "last"
