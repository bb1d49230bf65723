"""Does each marker stand at its count and rsum?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from lossscope.errors import InputError
from lossscope.plots import counts


def _frame():
    facts = [("triplet", 6.79, 6.11, 309.4), ("triplet_sh", 1, 1, 353.8), ("smoothap", 1.27, 1.47, 350.4)]
    rows = [(label, side, n, r) for label, a, b, r in facts for side, n in (("i2t", a), ("t2i", b))]
    return pd.DataFrame(rows, columns=["label", "direction", "count", "rsum"])


def test_markers_stand_at_the_data():
    ax = counts.draw(_frame())
    i2t, t2i = (item for item in ax.collections if isinstance(item, PathCollection))
    np.testing.assert_allclose(i2t.get_offsets(), [(6.79, 309.4), (1, 353.8), (1.27, 350.4)])
    np.testing.assert_allclose(t2i.get_offsets()[0], (6.11, 309.4))
    assert ax.get_xscale() == "symlog"


def test_labels_do_not_overlap():
    ax = counts.draw(_frame())
    ax.figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert len(boxes) == 3
    assert all(low.y1 <= high.y0 + 2 for low, high in pairwise(boxes))


def test_alt_and_missing_numbers():
    frame = _frame()
    frame.loc[0, "count"] = np.nan
    assert "triplet: rsum 309.4, t2i 6.11" in counts.alt(frame)


def test_frames_that_do_not_fit():
    frame = _frame()
    with pytest.raises(InputError, match="Add rsum"):
        counts.draw(frame.drop(columns="rsum"))
    with pytest.raises(InputError, match="direction must be i2t or t2i; got both"):
        counts.draw(frame.assign(direction="both"))
    with pytest.raises(InputError, match="both count and rsum"):
        counts.draw(frame.assign(rsum=np.nan))
