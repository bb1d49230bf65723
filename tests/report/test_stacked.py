"""Do panels side by side stand one below another on narrow screens, each whole and each once?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lossscope.plots import naming, style
from lossscope.report.stacked import crop, in_one_column, panel_boxes, stacked


def test_panels_side_by_side_are_boxes_row_by_row() -> None:
    figure = style.new_figure()
    for index in range(4):
        figure.add_subplot(2, 2, index + 1).plot([0, 1], label="a")
    figure.legend(loc="outside lower center")
    figure.draw_without_rendering()
    panels = panel_boxes(figure)
    assert len(panels) == 4
    assert panels[0][2] < panels[1][2] and panels[0][3] < panels[2][3]  # right ends and lower ends
    assert all(0 <= left < right <= 1 and 0 <= upper < lower <= 1 for left, upper, right, lower in panels)


def test_one_panel_and_panels_one_below_another_stay_as_they_are() -> None:
    for rows in (1, 2):
        figure = style.new_figure()
        for index in range(rows):
            figure.add_subplot(rows, 1, index + 1).plot([0, 1])
        figure.draw_without_rendering()
        assert panel_boxes(figure) == []


def test_the_stack_has_every_part_in_order() -> None:
    image = Image.new("RGB", (200, 100), "red")
    image.paste("blue", (100, 0, 200, 100))
    column = in_one_column(list(crop(image, [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5)])))
    assert column.size == (100, 100 + 16 + 50)
    assert column.getpixel((50, 50)) == (255, 0, 0) and column.getpixel((50, 140)) == (0, 0, 255)
    assert column.getpixel((50, 108)) == (255, 255, 255)


def test_a_legend_is_as_narrow_as_a_panel_and_whole(tmp_path: Path) -> None:
    figure = style.new_figure()
    for index in range(3):
        figure.add_subplot(1, 3, index + 1).plot([0, 1], color="green", label=f"a loss with a long name {index}")
    handles = [axes.get_lines()[0] for axes in figure.axes]
    naming.legend_below(figure, handles, "Means over three seeds, and bars that are one sample standard deviation")
    figure.savefig(tmp_path / "p.png")
    with Image.open(tmp_path / "p.png") as image:
        column = stacked(figure, image.convert("RGB"), 10_000)
        narrow = stacked(figure, image.convert("RGB"), 100)
        panels = list(crop(image, panel_boxes(figure)))
    assert column is not None
    assert column.width == max(panel.width for panel in panels)  # not that of the legend
    legend = np.asarray(column)[sum(panel.height + 16 for panel in panels) :]
    green = (legend == (0, 128, 0)).all(2).any(1)
    assert np.count_nonzero(np.diff(green.astype(int)) == 1) == 3  # a line for each loss, one below another
    assert (legend[-3:] == 255).all() and (legend[:, -1] == 255).all()  # no part is cut off
    assert narrow is not None and narrow.width <= 100 and narrow.height <= 800
    gaps = 3 * 16  # between three panels and the legend; they stay
    parts = [picture.height - gaps for picture in (narrow, column)]
    assert parts[0] / parts[1] == pytest.approx(narrow.width / column.width, rel=0.02)


def test_a_column_of_many_panels_is_no_taller_than_a_page_can_hold() -> None:
    """A WebP of more than 16,383 pixels is an error; 24 panels at full width would have had more."""
    figure = style.new_figure(width=2)
    for index in range(36):
        figure.add_subplot(12, 3, index + 1).plot([0, 1])
    figure.draw_without_rendering()
    image = Image.new("RGB", (2400, 12 * 800))
    column = stacked(figure, image, 720)
    assert column is not None and column.height <= 8 * 720
    assert column.height > 7.5 * 720
