"""How pictures become squares: as `fit` says, or the older flags."""

from __future__ import annotations

import pytest

from lossscope.datasets.formats.decoding import Fit
from lossscope.datasets.formats.picture_dataset import choose_fit
from lossscope.errors import InputError
from tests.each import each


@each("fit, crop, usual, expected", [
    (None, True, True, "square"),
    (None, False, True, "squeeze"),
    ("short-side", True, True, "short-side"),
    ("squeeze", False, True, "squeeze"),
    ("square", True, False, "square"),
    ("short-side", False, False, "short-side"),
])  # fmt: skip
def test_fit_goes_before_a_flag_at_its_default(fit: Fit | None, crop: bool, usual: bool, expected: Fit) -> None:
    assert choose_fit(fit, crop, usual) == expected


@each("crop, usual, by_flag", [(False, True, "squeeze"), (True, False, "square")])
def test_a_flag_that_says_otherwise_is_refused(crop: bool, usual: bool, by_flag: str) -> None:
    with pytest.raises(InputError, match=f"fit must be {by_flag}, as crop or squeeze says; got short-side. Leave one"):
        choose_fit("short-side", crop, usual)
