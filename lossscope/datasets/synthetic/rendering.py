"""Render scenes to pixels, with integers only: masks of the shapes are filled on a plain background."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .scene import JITTER, PLACES, SHAPES, SIZES, Scene, SceneObject

Pixels = npt.NDArray[np.uint8]
_Rows = npt.NDArray[np.int64]
_CACHE_BYTES = 2 << 30
_SHADE = 4  # brightness of one jitter step, of 255
_RGB: Mapping[str, tuple[int, int, int]] = {
    "red": (214, 36, 36),
    "green": (40, 160, 44),
    "blue": (36, 76, 224),
    "yellow": (248, 224, 32),
    "orange": (252, 128, 16),
    "purple": (140, 48, 192),
    "pink": (252, 136, 192),
    "cyan": (32, 200, 212),
    "black": (20, 20, 20),
    "white": (236, 236, 236),
    "grey": (128, 128, 128),
    "brown": (92, 60, 32),
}


class ScenePictures:
    """The images of scenes, (3, size, size) uint8; rendered at first use, and kept if they take at most 2 GiB."""

    def __init__(self, scenes: Sequence[Scene], size: int) -> None:
        self._scenes, self._size = scenes, size

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self._size, self._size)

    def __len__(self) -> int:
        return len(self._scenes)

    def take(self, rows: _Rows) -> Pixels:
        """Return the pictures of `rows`, (n, 3, size, size) uint8."""
        if len(self) * 3 * self._size**2 <= _CACHE_BYTES:
            return self._all[rows]
        return render([self._scenes[int(row)] for row in rows], self._size)

    @functools.cached_property
    def _all(self) -> Pixels:
        return render(self._scenes, self._size)


def render(scenes: Sequence[Scene], size: int) -> Pixels:
    """Render scenes to (n, 3, size, size) uint8, size at least 16."""
    pixels = np.empty((len(scenes), 3, size, size), dtype=np.uint8)
    masks = {(shape, scale): _shape_mask(shape, _radius(scale, size)) for shape in SHAPES for scale in SIZES}
    for picture, scene in zip(pixels, scenes, strict=True):
        picture[...] = _colour(scene.background, scene.shade)
        for item in scene.objects:
            _draw(picture, item, masks[item.shape, item.size])
    return pixels


def _draw(picture: Pixels, item: SceneObject, mask: npt.NDArray[np.bool_]) -> None:
    size, side = picture.shape[1], len(mask)
    margin = min((size - 1) // 6 - side // 2, size // 20)
    row, column = divmod(PLACES.index(item.position), 3)
    top = _middle(row, size) - side // 2 + _shift(item.jitter[0], margin)
    left = _middle(column, size) - side // 2 + _shift(item.jitter[1], margin)
    window = picture[:, top : top + side, left : left + side]
    np.copyto(window, _colour(item.colour, item.jitter[2]), where=mask)


def _middle(third: int, size: int) -> int:
    return (2 * third + 1) * size // 6


def _shift(jitter: int, margin: int) -> int:
    return jitter * (2 * margin + 1) // JITTER - margin


def _radius(scale: str, size: int) -> int:
    return size * (9 if scale == "large" else 5) // 64


@functools.cache
def _colour(name: str, shade: int) -> Pixels:
    """Return RGB (3, 1, 1) of a colour at a brightness step."""
    rgb = np.array(_RGB[name], dtype=np.int64) + _SHADE * (shade - JITTER // 2)
    return np.clip(rgb, 0, 255).astype(np.uint8).reshape(3, 1, 1)


def _shape_mask(shape: str, radius: int) -> npt.NDArray[np.bool_]:
    down, right = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    across, along = np.abs(right), np.abs(down)
    squared, disc = right**2 + down**2, radius * (radius + 1)
    hole, arm = radius * 3 // 5, radius // 3
    masks: dict[str, npt.NDArray[np.bool_]] = {
        "circle": squared <= disc,
        "square": across + along >= 0,
        "triangle": 2 * across <= down + radius,
        "cross": (across <= arm) | (along <= arm),
        "ring": (squared <= disc) & (squared > hole * hole),
        "diamond": across + along <= radius,
    }
    return masks[shape]
