"""Do panels that stand side by side stand one below another on narrow screens, each whole and each once?"""

from __future__ import annotations

from PIL import Image

from lossscope.plots import style
from lossscope.report.stacked import panel_boxes, stack


def test_panels_side_by_side_are_boxes_row_by_row_then_the_legend() -> None:
    figure = style.new_figure()
    for place in range(4):
        figure.add_subplot(2, 2, place + 1).plot([0, 1], label="a")
    figure.legend(loc="outside lower center")
    figure.draw_without_rendering()
    *panels, legend = panel_boxes(figure)
    assert len(panels) == 4
    assert panels[0][2] < panels[1][2] and panels[0][3] < panels[2][3]  # right ends and lower ends
    assert all(0 <= left < right <= 1 and 0 <= upper < lower <= 1 for left, upper, right, lower in (*panels, legend))
    assert legend[1] > panels[2][1]


def test_one_panel_and_panels_one_below_another_stay_as_they_are() -> None:
    for rows in (1, 2):
        figure = style.new_figure()
        for place in range(rows):
            figure.add_subplot(rows, 1, place + 1).plot([0, 1])
        figure.draw_without_rendering()
        assert panel_boxes(figure) == []


def test_the_stack_has_every_part_in_order() -> None:
    image = Image.new("RGB", (200, 100), "red")
    image.paste("blue", (100, 0, 200, 100))
    column = stack(image, [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5)])
    assert column.size == (100, 100 + 16 + 50)
    assert column.getpixel((50, 50)) == (255, 0, 0) and column.getpixel((50, 140)) == (0, 0, 255)
    assert column.getpixel((50, 108)) == (255, 255, 255)
