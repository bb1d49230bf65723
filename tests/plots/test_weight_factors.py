"""Are T, both pair weights and the residual drawn as the rows have them?"""

from __future__ import annotations

import numpy as np

from lossscope.plots import weight_factors
from tests.plots.frames import FRAMES


def test_panels_have_the_rows() -> None:
    frame = FRAMES[weight_factors]()[0]
    triplet, pairs, residual = weight_factors.draw(frame).axes[:3]
    D = (frame["s_neg"] - frame["s_pos"]).round(9)
    np.testing.assert_allclose(triplet.lines[0].get_ydata(), frame.groupby(D)["triplet"].mean())
    by_pos = frame.drop_duplicates("s_pos").sort_values("s_pos")
    np.testing.assert_allclose(pairs.lines[0].get_ydata(), by_pos["positive"])
    shown = np.ma.filled(np.ma.asarray(residual.collections[0].get_array()), np.nan).ravel()
    assert np.count_nonzero(np.isnan(shown)) == frame["residual"].isna().sum()
    assert residual.get_title() == "residual 0"


def test_a_residual_has_a_scale_and_words_and_the_other_sign_is_dashed() -> None:
    frame = FRAMES[weight_factors]()[1]
    first = frame["objective"].iloc[0]
    frame = frame.assign(residual=0.25, negative=frame["negative"].where(frame["s_neg"] > 0.5, -frame["negative"]))
    fig = weight_factors.draw_many(frame)
    titles = [ax.get_title() for ax in fig.axes]
    assert titles.count("residual up to 0.25") == frame["objective"].nunique()
    assert "leaves up to 0.25 of the logarithm" in weight_factors.alt(frame[frame["objective"] == first])
    dashed = [line for line in fig.axes[1].lines if line.get_linestyle() == "--"]
    assert np.isfinite(dashed[1].get_ydata()).any() and not np.isfinite(dashed[0].get_ydata()).any()
