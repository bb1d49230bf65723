"""How does a picture file become a square array of pixels?"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.io.reading import lacks_memory, show_path

from .linear_resizing import resize_linear
from .tar_index import TarMember

Pixels = npt.NDArray[Any]  # uint8, or float32 in 0..1
Resample = Literal["bilinear", "bicubic"]
Filter = Resample | Literal["cv2"]
"""Filters of Pillow, which average over the pixels that they skip; or cv2's linear one, which does not."""
Fit = Literal["square", "short-side", "short-side-floor", "squeeze"]
"""How a picture becomes a square: its middle square resized; its short side resized, then the middle cut out (at a
rounded offset as torchvision, or at one rounded down as transformers); or the whole of it squeezed."""
Rgb = Literal["first", "last", "on-white"]
"""When a picture becomes RGB: before it is resized, or after, so that it is resized in the mode of its file. Both drop
transparency; on-white lays a transparent picture on white before it is resized, as image processors of transformers."""
_KERNELS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
_MAX_RESIZED = 1 << 26  # pixels of a resized picture, and between its two passes
_MAX_FILE = 1 << 28  # bytes of a picture
_ADVICE = "replace the file, or leave such files out with on_error=skip"


@dataclass(frozen=True)
class Preprocessing:
    """How picture files become squares of pixels."""

    size: int  # pixels of a side
    fit: Fit = "square"
    resample: Filter = "bilinear"
    rgb: Rgb = "first"  # last is of Pillow's filters; cv2's is of pictures in RGB

    @property
    def shape(self) -> tuple[int, ...]:
        """(3, size, size)"""
        return (3, self.size, self.size)

    @property
    def dtype(self) -> type[np.generic]:
        """uint8 of Pillow's filters, float32 of cv2's."""
        return np.float32 if self.resample == "cv2" else np.uint8

    def decode(self, path: Path | TarMember) -> Pixels:
        """Return the picture in a file, (3, size, size) in RGB. Raises InputError naming the file."""
        return self._interpolate(path) if self.resample == "cv2" else self._resize(path)

    def _resize(self, path: Path | TarMember) -> Pixels:
        image = _open(path, Image.Image.copy if self.rgb == "last" else self._to_rgb_first)
        try:
            square = _to_square(path, image, self.size, self.fit, _KERNELS[self.resample])
        except InputError:
            raise
        except ValueError as problem:  # of modes that Pillow does not resize
            raise InputError(
                f"{path} must be of a mode that resizing supports; got {image.mode} ({problem}): {_ADVICE}"
            ) from None
        return np.ascontiguousarray(np.asarray(_to_rgb(square), dtype=np.uint8).transpose(2, 0, 1))

    def _interpolate(self, path: Path | TarMember) -> Pixels:
        """Return the whole picture, its aspect ratio lost, as cv2.resize of floats makes it."""
        image = _open(path, self._to_rgb_first)
        _require_resizable(path, image.size, (self.size, self.size))
        pixels = resize_linear(np.asarray(image, dtype=np.float32), self.size)
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)) / 255

    def _to_rgb_first(self, image: Image.Image) -> Image.Image:
        return _to_rgb(_lay_on_white(image) if self.rgb == "on-white" else image)


def _open(path: Path | TarMember, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """Return what `convert` makes of the picture in a file. Raises InputError naming the file."""
    try:
        if isinstance(path, Path) and path.exists():
            require_file(path)  # a pipe would be waited for without end
        size = path.stat().st_size if isinstance(path, Path) else path.size
        if size > _MAX_FILE:
            raise ValueError(f"more than {_MAX_FILE >> 20} MB")
        with path.open("rb") as file:
            content = io.BytesIO(file.read())  # the header may state more than there is
        with Image.open(content) as image:
            if not min(image.size):
                raise ValueError("no pixels")
            return convert(image)
    except Exception as problem:  # Pillow can raise anything for a damaged file
        if isinstance(problem, InputError) and isinstance(path, TarMember):
            raise  # the tar changed: no picture of it is damaged
        reason = f"{type(problem).__name__} ({problem})"
        if isinstance(problem, FileNotFoundError):
            reason = "no such file"
        elif isinstance(problem, InputError):
            reason = "a folder, a pipe or a device"
        elif lacks_memory(problem):
            reason = "too little memory"
        raise InputError(f"{show_path(str(path))} must be a whole picture; got {reason}: {_ADVICE}") from None


def _to_rgb(image: Image.Image) -> Image.Image:
    """Return a picture in RGB, those with transparency over RGBA, which is of the same colours and no warning."""
    return (image.convert("RGBA") if "transparency" in image.info else image).convert("RGB")


def _lay_on_white(image: Image.Image) -> Image.Image:
    """Return a transparent picture on white, without transparency; another one as it is."""
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")


def _require_resizable(path: Path | TarMember, old: tuple[int, int], new: tuple[int, int]) -> None:
    """Raise InputError when resizing a picture takes more than 2²⁶ pixels, as that of a long thin one does.

    Args:
        path: of the picture, for the message.
        old: its width and height.
        new: those after it is resized, first along the width, then along the height.
    """
    if new[0] * max(old[1], new[1]) > _MAX_RESIZED:
        got = f"{old[0]} x {old[1]}, resized to {new[0]} x {new[1]}"
        raise InputError(f"{path} must be of at most {_MAX_RESIZED} pixels for resizing; got {got}: {_ADVICE}")


def _to_square(
    path: Path | TarMember, image: Image.Image, size: int, fit: Fit, kernel: Image.Resampling
) -> Image.Image:
    if fit == "square":
        return image.resize((size, size), kernel, box=_middle_square(*image.size))
    if fit == "squeeze":
        _require_resizable(path, image.size, (size, size))
        return image.resize((size, size), kernel)
    return _cut_middle(path, image, size, fit, kernel)


def _cut_middle(
    path: Path | TarMember, image: Image.Image, size: int, fit: Fit, kernel: Image.Resampling
) -> Image.Image:
    """Return the middle square of a picture whose short side is resized first."""
    short = min(image.size)
    width, height = (size if side == short else int(size * side / short) for side in image.size)
    _require_resizable(path, image.size, (width, height))
    left, top = ((side - size) / 2 for side in (width, height))
    corner = (int(left), int(top)) if fit == "short-side-floor" else (round(left), round(top))
    return image.resize((width, height), kernel).crop((*corner, corner[0] + size, corner[1] + size))


def _middle_square(width: int, height: int) -> tuple[float, float, float, float]:
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return (left, top, left + side, top + side)
