"""Do curves go through the means at each temperature, with bands of the deviation?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.plots import style, what_if

TAU = np.array([0.02, 0.05, 0.1, 0.2])


def _frame(statistics=("C_neg", "W_neg"), directions=("i2t", "t2i")):
    parts = [
        pd.DataFrame({"value": TAU, "mean": 100 * TAU + place + turn, "std": 0.5}).assign(
            statistic=name, direction=side
        )
        for place, name in enumerate(statistics)
        for turn, side in enumerate(directions)
    ]
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0).sort_values("statistic", kind="stable")


def test_lines_and_bands_are_the_data():
    ax = what_if.draw(_frame(("C_neg",), ("i2t",)))
    (line,) = ax.lines
    np.testing.assert_allclose(line.get_xdata(), TAU)
    np.testing.assert_allclose(line.get_ydata(), 100 * TAU)
    band = ax.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (pytest.approx(1.5), pytest.approx(20.5))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()[0]) == ("temperature", "C_neg", 0)


def test_a_wide_range_is_logarithmic_and_a_narrow_one_not():
    frame = _frame(("C_neg",))
    assert what_if.draw(frame).get_xscale() == "log"
    assert what_if.draw(frame[frame["value"] >= 0.05]).get_xscale() == "linear"


def test_a_panel_per_statistic_each_on_its_own_scale():
    fig = what_if.draw_many(_frame(), "tau", at=0.1)
    assert [ax.get_ylabel() for ax in fig.axes] == ["C_neg", "W_neg"]
    for ax in fig.axes:
        assert len(ax.lines) == 3
        assert list(ax.lines[-1].get_xdata()) == [0.1, 0.1]
        assert [text.get_text() for text in ax.texts] == ["trained with 0.1"]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["image to text", "text to image"]


def test_unknown_means_are_left_out():
    frame = _frame(("C_neg",), ("i2t",))
    frame.loc[frame["value"] == 0.05, "mean"] = np.nan
    (line,) = what_if.draw(frame).lines
    np.testing.assert_allclose(line.get_xdata(), [0.02, 0.1, 0.2])


def test_alt_states_both_ends():
    assert "C_neg i2t: 2 at 0.02, 20 at 0.2" in what_if.alt(_frame())


@pytest.mark.slow
def test_saved_in_both_styles(tmp_path):
    for name, context in (("p", style.paper), ("s", style.screen)):
        with context():
            assert style.save(what_if.draw_many(_frame(), at=0.1), tmp_path / f"{name}.pdf").is_file()


def test_frames_that_do_not_fit():
    frame = _frame()
    with pytest.raises(InputError, match="Add std"):
        what_if.draw(frame.drop(columns="std"))
    with pytest.raises(InputError, match="one statistic"):
        what_if.draw(frame)
    with pytest.raises(InputError, match="got some twice"):
        what_if.draw_many(pd.concat([frame, frame]))
    with pytest.raises(InputError, match="direction must be i2t or t2i; got both"):
        what_if.draw_many(frame.assign(direction="both"))
    with pytest.raises(InputError, match="known mean; got none"):
        what_if.draw_many(frame.assign(mean=np.nan))
