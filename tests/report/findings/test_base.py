"""Are numbers and p values written as sentences need them?"""

from __future__ import annotations

import pandas as pd
import pytest

from lossscope.report.findings.base import floor_note, p_text, per_cent
from tests.report.findings.results_by_hand import against_best


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.5, "50 %"), (0.98, "98 %"), (0.0001, "less than 0.1 %"),
     (0.9996, "more than 99.9 %")],
)  # fmt: skip
def test_some_is_never_none_and_most_never_all(share: float, text: str) -> None:
    assert per_cent(share) == text


@pytest.mark.parametrize(
    ("p", "floor", "text"),
    [
        (0.0072, True, "p ≤ 0.0072"), (0.0072, False, "p = 0.0072"), (0.96, False, "p = 0.96"), (1.0, False, "p = 1"),
        (0.00002, True, "p ≤ 0.00002"), (0.0512, False, "p = 0.051"),
    ],
)  # fmt: skip
def test_p_is_at_most_what_the_permutations_can_give(p: float, floor: bool, text: str) -> None:
    assert p_text(against_best("B", 1.0, p=p, p_at_floor=floor)) == text


def test_the_floor_is_explained_once_with_its_numbers() -> None:
    rows = pd.DataFrame([against_best("B", 1.0, p_at_floor=True, family=36), against_best("C", 1.0)])
    assert floor_note(rows) == (
        "p ≤: the smallest that 9,999 random permutations can give (0.0002, corrected by Holm over 36 comparisons); "
        "the true "
        "one may be smaller.",
    )
    assert floor_note(rows[1:]) == ()
