"""Read numbers from the artists of a picture, and fit legends only where a test needs it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes

from lossscope.plots import naming

Values = npt.NDArray[np.float64]
Histogram = Callable[[Axes], tuple[Values, Values]]


@pytest.fixture
def fitted() -> None:
    """Fit legends, as outside tests."""


@pytest.fixture(autouse=True)
def _unfitted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip fitting legends, which takes most of the time, except where tests ask for positions."""
    if "fitted" not in request.fixturenames:
        monkeypatch.setattr(naming, "_FITS", 0)


@pytest.fixture
def histogram() -> Histogram:
    """Return the heights and edges of the bins of a filled histogram."""

    def read(ax: Axes) -> tuple[Values, Values]:
        outline = ax.collections[0].get_paths()[0].vertices
        top = outline[len(outline) // 2 + 1 : -1][::-1]  # after the base from left to right, the top back
        return top[:-1:2, 1], top[::2, 0]

    return read
