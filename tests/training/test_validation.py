"""Which epoch is the best."""

from __future__ import annotations

import pytest

from lossscope.training.validation import selection_score


def test_what_the_best_epoch_has_most_of() -> None:
    metrics = {f"{side}_R@{k}": float(10 * k + (side == "t2i")) for side in ("i2t", "t2i") for k in (1, 5, 10)}
    metrics["rsum"] = 300.0
    assert selection_score("rsum", metrics, 3) == 300.0
    assert selection_score("r1_r5", metrics, 3) == 10 + 50 + 11 + 51
    assert selection_score("geometric", metrics, 3) == pytest.approx((11 * 51 * 101) ** (1 / 3))
    assert selection_score("last", metrics, 3) == 3.0
