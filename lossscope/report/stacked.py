"""A picture of small multiples -> the same panels one below another, for narrow screens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from PIL import Image

from lossscope.plots.naming import redraw_legend

Box = tuple[float, float, float, float]  # left, upper, right, lower; parts of the picture's width and height
_MARGIN = 0.008  # around a panel, part of the picture
_GAP = 16  # pixels between panels
_HIGHEST = 8  # times the width that is asked for; a WebP has at most 16,383 pixels


def stacked(figure: Any, image: Image.Image, width: int) -> Image.Image | None:
    """Return the panels of a picture in one column, and its legends as wide as a panel; None where it has one column.

    Args:
        figure: of matplotlib, laid out.
        image: the same, drawn.
        width: of the column in pixels, at most, and an eighth of its height; its parts are shrunk one by one, so that
            a column of many is never there at full size.
    """
    boxes = panel_boxes(figure)
    if not boxes:
        return None
    sizes = [(right - left, lower - upper) for left, upper, right, lower in _pixels(image, boxes)]
    widest, dpi = max(w for w, _ in sizes), image.width / float(figure.get_figwidth())
    legends = [Image.fromarray(redraw_legend(legend, widest / dpi, dpi)) for legend in figure.legends]
    highest = sum(h for _, h in sizes) + sum(legend.height for legend in legends)
    gaps = _GAP * (len(sizes) + len(legends) - 1)
    factor = min(1.0, width / widest, (_HIGHEST * width - gaps) / highest)
    return in_one_column([_shrunk(part, factor) for part in itertools.chain(crop(image, boxes), legends)])


def panel_boxes(figure: Any) -> list[Box]:
    """Return where the panels of a figure are, row by row; none unless two stand side by side.

    Args:
        figure: of matplotlib, laid out.
    """
    panels = [_box(figure, axes.get_tightbbox()) for axes in figure.axes if axes.get_visible()]
    if not any(_side_by_side(first, second) for first, second in itertools.combinations(panels, 2)):
        return []
    return panels


def crop(image: Image.Image, boxes: Sequence[Box]) -> Iterator[Image.Image]:
    """Yield the parts of a picture."""
    yield from (image.crop(box) for box in _pixels(image, boxes))


def in_one_column(parts: Sequence[Image.Image]) -> Image.Image:
    """Return pictures one below another."""
    total = sum(part.height for part in parts) + _GAP * (len(parts) - 1)
    column = Image.new("RGB", (max(part.width for part in parts), total), "white")
    top = 0
    for part in parts:
        column.paste(part, (0, top))
        top += part.height + _GAP
    return column


def _pixels(image: Image.Image, boxes: Sequence[Box]) -> list[tuple[int, int, int, int]]:
    width, height = image.size
    return [(round(a * width), round(b * height), round(c * width), round(d * height)) for a, b, c, d in boxes]


def _shrunk(part: Image.Image, factor: float) -> Image.Image:
    if factor == 1:
        return part
    size = max(1, int(part.width * factor)), max(1, int(part.height * factor))
    return part.resize(size, Image.Resampling.BICUBIC)


def _box(figure: Any, extent: Any) -> Box:
    """Return an extent in display units as a box of the picture, with a margin."""
    width, height = figure.bbox.width, figure.bbox.height
    left, right = extent.x0 / width - _MARGIN, extent.x1 / width + _MARGIN
    upper, lower = 1 - extent.y1 / height - _MARGIN, 1 - extent.y0 / height + _MARGIN
    return max(0.0, left), max(0.0, upper), min(1.0, right), min(1.0, lower)


def _side_by_side(first: Box, second: Box) -> bool:
    """Return whether two boxes share more than half of the height of the lower one."""
    shared = min(first[3], second[3]) - max(first[1], second[1])
    return shared > 0.5 * min(first[3] - first[1], second[3] - second[1])
