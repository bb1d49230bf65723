"""A picture of small multiples -> the same panels one below another, for narrow screens."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

Box = tuple[float, float, float, float]  # left, upper, right, lower; parts of the picture's width and height
_MARGIN = 0.008  # around a panel, part of the picture
_GAP = 16  # pixels between panels
_LETTER = 0.58  # width of a letter, part of its size
_HANDLE = 6  # letters that a line or marker of a legend takes


def stacked(figure: Any, image: Image.Image) -> Image.Image | None:
    """Return the panels of a picture in one column, and its legends as wide as a panel; None where it has one column.

    Args:
        figure: of matplotlib, laid out.
        image: the same, drawn.
    """
    boxes = panel_boxes(figure)
    if not boxes:
        return None
    panels = crop(image, boxes)
    inches = max(panel.width for panel in panels) / image.width * float(figure.get_figwidth())
    dpi = image.width / float(figure.get_figwidth())
    return in_one_column([*panels, *(_redraw(legend, inches, dpi) for legend in figure.legends)])


def panel_boxes(figure: Any) -> list[Box]:
    """Return where the panels of a figure are, row by row; none unless two stand side by side.

    Args:
        figure: of matplotlib, laid out.
    """
    panels = [_box(figure, axes.get_tightbbox()) for axes in figure.axes if axes.get_visible()]
    if not any(_side_by_side(one, other) for one, other in itertools.combinations(panels, 2)):
        return []
    return panels


def crop(image: Image.Image, boxes: Sequence[Box]) -> list[Image.Image]:
    """Return the parts of a picture."""
    width, height = image.size
    return [
        image.crop((round(a * width), round(b * height), round(c * width), round(d * height))) for a, b, c, d in boxes
    ]


def in_one_column(parts: Sequence[Image.Image]) -> Image.Image:
    """Return pictures one below another."""
    total = sum(part.height for part in parts) + _GAP * (len(parts) - 1)
    column = Image.new("RGB", (max(part.width for part in parts), total), "white")
    top = 0
    for part in parts:
        column.paste(part, (0, top))
        top += part.height + _GAP
    return column


def _redraw(legend: Any, inches: float, dpi: float) -> Image.Image:
    """Return a legend in one column, its texts wrapped to a width."""
    texts = legend.get_texts()
    size = float(texts[0].get_fontsize()) if texts else float(legend.get_title().get_fontsize())
    letters = max(10, int(inches * 72 / (_LETTER * size)))
    labels = [textwrap.fill(" ".join(text.get_text().split()), letters - _HANDLE) for text in texts]
    title = textwrap.fill(" ".join(legend.get_title().get_text().split()), letters)
    lines = sum(text.count("\n") + 2 for text in (*labels, title))
    figure = Figure(figsize=(inches, lines * 2 * size / 72), dpi=dpi)
    canvas: Any = FigureCanvasAgg(figure)
    drawn = figure.legend(
        legend.legend_handles, labels, loc="upper left", ncols=1, fontsize=size, title=title or None,
        title_fontsize=size, alignment="left", frameon=False, borderaxespad=0.0, handletextpad=0.6,
    )  # fmt: skip
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return image.crop((0, 0, image.width, min(image.height, round(image.height - drawn.get_window_extent().y0) + 2)))


def _box(figure: Any, extent: Any) -> Box:
    """Return an extent in display units as a box of the picture, with a margin."""
    width, height = figure.bbox.width, figure.bbox.height
    left, right = extent.x0 / width - _MARGIN, extent.x1 / width + _MARGIN
    upper, lower = 1 - extent.y1 / height - _MARGIN, 1 - extent.y0 / height + _MARGIN
    return max(0.0, left), max(0.0, upper), min(1.0, right), min(1.0, lower)


def _side_by_side(one: Box, other: Box) -> bool:
    """Return whether two boxes share more than half of the height of the lower one."""
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > 0.5 * min(one[3] - one[1], other[3] - other[1])
