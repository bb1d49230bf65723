"""Does every picture state what it shows, in letters that a column of paper can hold?"""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from lossscope.declarations import declarations
from lossscope.plots import style
from tests.each import each
from tests.plots.frames import FRAMES

pytestmark = pytest.mark.usefixtures("fitted")


def _figure(module: Any, many: bool) -> Figure:
    draw, frame = (module.draw_many, FRAMES[module]()[1]) if many else (module.draw, FRAMES[module]()[0])
    drawn = draw(frame)
    return getattr(drawn, "figure", drawn)


def test_every_picture_is_here():
    assert {module.__name__.rpartition(".")[2] for module in FRAMES} == {
        picture.name for picture in declarations("pictures")
    }


@each("module", FRAMES)
def test_pictures_of_many_have_a_headline_and_letters_of_seven_points_within_their_edges(module):
    with style.paper():
        check(_figure(module, many=hasattr(module, "draw_many")))


@each("module", FRAMES)
def test_pictures_of_one_have_them_too(module):
    with style.paper():
        check(_figure(module, many=False))


@pytest.mark.thorough
@each("module", FRAMES, "many", [False, True])
def test_pictures_have_them_on_a_screen(module, many):
    with style.screen():
        check(_figure(module, many=many and hasattr(module, "draw_many")))


def check(fig):
    """Check a picture at the printed width nearest to its width: one column, 3.3 inches, or two, 7 inches."""
    assert len(style.headline(fig).split()) >= 4
    assert "_" not in style.headline(fig)
    fig.draw_without_rendering()
    column = style.new_figure().get_figwidth()
    assert fig.get_figwidth() <= style.PAGE * column + 1e-9
    printed = style.COLUMN * (1 if fig.get_figwidth() <= 1.2 * column else style.PAGE)
    shrunk = printed / fig.get_figwidth() if printed < fig.get_figwidth() else 1.0
    sizes = [text.get_fontsize() * shrunk for text in fig.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(sizes) >= style.SMALLEST - 1e-6
    box = fig.get_tightbbox()
    assert box.x0 >= -0.03 and box.x1 <= fig.get_figwidth() + 0.03
    assert box.y0 >= -0.03 and box.y1 <= fig.get_figheight() + 0.03
