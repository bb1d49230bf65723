"""Are the numbers of the cells the shares of their levels, the bars those of all, and printed claims marked?"""

from __future__ import annotations

import re

import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from lossscope.plots import multiverse, style
from tests.plots.frames import FRAMES


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return a claim on counts, undefined at twice the batch size, false only as released at eps 0.1; and rsum."""
    return FRAMES[multiverse]()[0]


def texts(ax):
    """Return (x, y) -> text of the cells, and the bars' texts."""
    return {text.get_position(): text.get_text() for text in ax.texts if re.fullmatch(r"\d+|none", text.get_text())}


def column(ax, level):
    return next(
        tick for tick, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True) if text.get_text() == level
    )


def test_cells_are_the_shares_of_their_levels(frame):
    ax = multiverse.draw(frame)
    rows = {text.get_text(): tick for tick, text in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    shown = texts(ax)
    y = rows["● SmoothAP < Triplet"]
    cells = {level: shown.get((column(ax, level), y)) for level in ("corrected", "released", "0.01", "0.1", "×1", "×2")}
    assert cells == {"corrected": "100", "released": "50", "0.01": "100", "0.1": "50", "×1": "75", "×2": None}
    y = rows["NT-Xent < Triplet"]
    assert [shown.get((column(ax, level), y)) for level in ("corrected", "0.01", "×1", "first", "0")] == [
        None, None, None, "100", "100",
    ]  # fmt: skip


def test_bars_are_the_shares_of_all_defined_universes(frame):
    ax = multiverse.draw(frame)
    blue = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_height() < 1]
    lengths = [patch.get_width() for patch in blue]
    assert [done / whole for whole, done in zip(lengths[::2], lengths[1::2], strict=True)] == pytest.approx([0.75, 1.0])


def test_blocks_are_metrics_and_dimensions_stand_below(frame):
    ax = multiverse.draw(frame)
    bold = [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]
    assert bold == ["i2t count", "rsum"]
    names = [text.get_text() for text in ax.texts if text.get_position()[1] > max(ax.get_yticks())]
    assert names == ["convention", "unit", "eps", "batch size", "epoch", "seed", "all (%)"]
    two = pd.concat([frame, frame.assign(data="other")])
    bold = [text.get_text() for text in multiverse.draw(two).texts if text.get_fontweight() == "bold"]
    assert bold == ["i2t count, scenes", "rsum, scenes", "i2t count, other", "rsum, other"]


def test_the_legend_says_what_is_undefined_and_that_no_p_value_follows(frame):
    title = " ".join(multiverse.draw(frame).figure.legends[0].get_title().get_text().split())
    assert "36 comparisons of a claim in a universe, 16 undefined and in no share" in title
    assert "choices, not samples: no p-value follows" in title


def test_a_claim_without_a_defined_universe_has_no_bar(frame):
    ax = multiverse.draw(frame[frame["batch"] == 2.0])
    assert list(texts(ax).values()) == ["none"]


def test_numbers_stand_upright_where_names_or_levels_leave_no_width(frame):
    many = pd.concat([frame.assign(seed=frame["seed"] + 2 * k) for k in range(10)])
    long = frame.assign(higher="a loss with a name that takes nearly all of the width of a page of paper")
    with style.paper():
        for rows in (many, long):
            numbers = [text for text in multiverse.draw(rows).texts if text.get_text() == "50"]
            assert numbers and {text.get_rotation() for text in numbers} == {90.0}
        assert {text.get_rotation() for text in multiverse.draw(frame).texts} == {0.0}


@pytest.mark.parametrize("look", [style.screen, style.paper])
def test_numbers_stay_within_their_cells(frame, look):
    with look():
        ax = multiverse.draw(pd.concat([frame.assign(seed=frame["seed"] + 2 * k) for k in range(4)]))
        ax.figure.draw_without_rendering()
        cell = ax.transData.transform([(0, 0), (1, 0)])
        width = cell[1, 0] - cell[0, 0]
        numbers = [text for text in ax.texts if text.get_text() == "100"]
        assert numbers and all(text.get_window_extent().width <= width for text in numbers)


def test_the_description_has_each_claim(frame):
    text = multiverse.alt(frame)
    assert "i2t_count of SmoothAP < Triplet (scenes, VSE++, printed): 75% of 16, most decisive convention" in text
    assert "rsum of NT-Xent < Triplet (scenes, VSE++, ours): 100% of 4" in text and "nan" not in text
