"""Does each line show the cosines of the frame, and do dots stand at the k that it states?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from lossscope.plots import fidelity, style
from tests.plots.frames import FRAMES


def frame() -> pd.DataFrame:
    return FRAMES[fidelity]()[0]


def lines_of(ax):
    return {line.get_label(): line for line in ax.lines if not str(line.get_label()).startswith("_")}


def test_lines_are_the_data():
    ax = fidelity.draw(frame().sample(frac=1, random_state=0))
    assert set(lines_of(ax)) == {
        f"{name} {direction}" for name in ("NT-Xent, temperature τ = 0.1", "Triplet SH") for direction in ("i2t", "t2i")
    }
    curve = frame()[lambda rows: rows["statistic"] == "curve"].iloc[:10]
    for line in lines_of(ax).values():
        np.testing.assert_array_equal(line.get_xdata(), curve["x"])
        np.testing.assert_array_equal(line.get_ydata(), curve["mean"])
    assert lines_of(ax)["Triplet SH t2i"].get_linestyle() == "--"
    assert ax.get_xscale() == "log"


def test_a_dot_of_the_colour_of_its_line_stands_at_k95_on_the_line_of_the_share():
    rows = frame()
    rows.loc[(rows["statistic"] == "k95") & (rows["objective"] == "triplet_sh"), "mean"] = 1.0
    ax = fidelity.draw(rows)
    dots = [line for line in ax.lines if line.get_marker() in ("o", "s")]
    assert [(dot.get_xdata()[0], dot.get_ydata()[0]) for dot in dots] == [(4.5, 0.95)] * 2 + [(1, 0.95)] * 2
    assert to_hex(dots[-1].get_color()).upper() == style.COLOURS["triplet_sh"]
    (share,) = (line for line in ax.lines if list(line.get_ydata()) == [0.95, 0.95])
    assert [text.get_text() for text in ax.texts] == ["95 %"] and share.get_color() == "0.75"


def test_the_share_is_that_of_the_statistic():
    rows = frame().replace({"statistic": {"k95": "k99.5"}})
    assert [text.get_text() for text in fidelity.draw(rows).texts] == ["99.5 %"]


def test_the_axis_ends_where_all_lines_are_at_the_top():
    rows = frame()
    curve = rows["statistic"] == "curve"
    rows.loc[curve, "mean"] = rows.loc[curve, "mean"].where(rows.loc[curve, "x"] < 30, 1.0)
    assert 30 < fidelity.draw(rows).get_xlim()[1] < 50
    assert fidelity.draw(rows.assign(mean=rows["mean"].where(~curve, 1.0))).get_xlim()[1] > 20


def test_sources_are_told_apart():
    ax = fidelity.draw(pd.concat([frame(), frame().assign(source="b.pt")]))
    assert len(lines_of(ax)) == 8 and any("(b)" in name or ", b " in name for name in lines_of(ax))


def test_alt_states_k95():
    rows = frame()[lambda rows: (rows["objective"] == "triplet_sh") & (rows["direction"] == "i2t")]
    assert fidelity.alt(rows) == (
        "Cosine of the gradient and the gradient with the k heaviest negatives, against k. "
        "Triplet SH i2t: 0.800 at k = 1, 95 % at k = 4.5."
    )
