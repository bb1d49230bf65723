"""Pictures of every mode, with transparency and without: what do `first` and `on-white` make of their pixels?

The answers of `on-white` are those of the image processors of CLIP and SigLIP in transformers 5.23.0 with Pillow 13.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lossscope.datasets.formats.decoding import Preprocessing, Rgb
from tests.each import each

Pixel = tuple[int, ...]
Known = tuple[Pixel, Pixel]
_COLOURS: Known = ((10, 20, 30), (200, 100, 0))
_GREYS: Known = ((100, 100, 100), (255, 255, 255))
_WHITES: Known = ((255, 255, 255), (255, 255, 255))
CASES: dict[str, tuple[Known, Known]] = {  # name -> two pixels by first, by on-white
    "RGBA": (((200, 100, 0), (200, 100, 0)), ((255, 255, 255), (227, 177, 127))),
    "LA": (((100, 100, 100), (100, 100, 100)), ((255, 255, 255), (177, 177, 177))),
    "P": (_COLOURS, _COLOURS),
    "P with a transparent colour": (_COLOURS, ((10, 20, 30), (255, 255, 255))),
    "P with alpha of each colour": (_COLOURS, ((132, 137, 142), (255, 255, 255))),
    "L": (_GREYS, _GREYS),
    "L with a transparent grey": (_GREYS, _WHITES),
    "1": (((0, 0, 0), (255, 255, 255)), ((0, 0, 0), (255, 255, 255))),
    "1 with transparent black": (((0, 0, 0), (255, 255, 255)), _WHITES),
    "RGB with a transparent colour": (_COLOURS, ((255, 255, 255), (200, 100, 0))),
    "CMYK": (((207, 198, 190), (255, 155, 55)), ((207, 198, 190), (255, 155, 55))),
    "I;16": (_GREYS, _GREYS),
    "I;16 with a transparent grey": (_GREYS, _WHITES),
    "I": (_GREYS, _GREYS),
    "F": (_GREYS, _GREYS),
}  # fmt: skip


def draw(name: str, path: Path) -> Path:
    """Draw two pixels of a case, and return the file."""
    mode = name.split(" ")[0]
    pixels: dict[str, list[float | Pixel]] = {
        "RGBA": [(200, 100, 0, 0), (200, 100, 0, 128)], "LA": [(100, 0), (100, 128)], "P": [0, 1], "1": [0, 255],
        "RGB": list(_COLOURS), "CMYK": [(10, 20, 30, 40), (0, 100, 200, 0)], "L": [100, 255],
    }  # fmt: skip
    image = Image.new(mode, (2, 1))
    if mode == "P":
        image.putpalette([value for colour in _COLOURS for value in colour])
    for column, value in enumerate(pixels.get(mode, [100, 1000])):
        image.putpixel((column, 0), value)  # type: ignore[arg-type]
    transparent: dict[str, object] = {
        "P with a transparent colour": 1, "P with alpha of each colour": b"\x80\x00", "L with a transparent grey": 100,
        "1 with transparent black": 0, "RGB with a transparent colour": (10, 20, 30),
        "I;16 with a transparent grey": 100,
    }  # fmt: skip
    file = path / ("x.tif" if mode in ("CMYK", "I", "F") else "x.png")
    image.save(file, **({"transparency": transparent[name]} if name in transparent else {}))
    return file


def read(file: Path, rgb: Rgb) -> Known:
    """Return the two pixels of a file, each as wide as high."""
    pixels = Preprocessing(2, "squeeze", rgb=rgb).decode(file)
    assert np.array_equal(pixels[:, 0], pixels[:, 1])
    left, right = pixels[:, 0].T.tolist()
    return tuple(left), tuple(right)


@each("name", list(CASES))
def test_transparency_is_dropped_or_laid_on_white(name: str, tmp_path: Path) -> None:
    """Transparency was always dropped, which the image processors of transformers do not do."""
    file = draw(name, tmp_path)
    assert (read(file, "first"), read(file, "on-white")) == CASES[name]


@each("name", list(CASES))
def test_pixels_on_white_are_those_of_the_image_processors(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    with Image.open(draw(name, tmp_path)) as image:
        for processor in (CLIPImageProcessorPil, SiglipImageProcessorPil):
            theirs = processor().process_image(image, do_convert_rgb=True)
            assert tuple(map(tuple, theirs[:, 0].T.tolist())) == CASES[name][1]


def test_floats_of_cv2_are_of_pixels_on_white(tmp_path: Path) -> None:
    pixels = Preprocessing(2, "squeeze", "cv2", "on-white").decode(draw("RGBA", tmp_path))
    assert np.round(pixels[:, 0].T * 255).astype(int).tolist() == [[255, 255, 255], [227, 177, 127]]
