"""Does lossscope call the smallest p of its resamples a bound, and suggest a name for an unknown baseline?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.stats.compare import compare
from lossscope.stats.options import Resampling
from lossscope.stats.paired_tests import images_test
from lossscope.tables import comparison
from tests.each import each


def queries(*systems: str, images: int = 40) -> pd.DataFrame:
    """Return ranks of one run of each system; the next system ranks each image one position lower."""
    parts = [
        {"direction": side, "query": f"{side}{k}", "image": k, "rank": index + 1, "ap5": 1 / (2 + index), "relevant": 1,
         "run": name, "data": "scenes", "encoder": "VSE++", "objective_label": name, "seed": 0}
        for index, name in enumerate(systems) for side in ("i2t", "t2i") for k in range(images)
    ]  # fmt: skip
    return pd.DataFrame(parts)


def test_a_p_at_the_floor_of_the_resamples_is_marked() -> None:
    different, same = np.full(40, 2.0), np.tile([1.0, -1.0], 20)
    floor, chance = images_test(np.array([different, same]), Resampling(199))
    assert floor.p == pytest.approx(2 / 200) and floor.p_at_floor
    assert chance.p > 0.1 and not chance.p_at_floor


def test_an_exhaustive_test_has_no_floor() -> None:
    (exact,) = images_test(np.full((1, 5), 2.0), Resampling(199))  # all 32 patterns of signs
    assert exact.p == pytest.approx(2 / 32) and not exact.p_at_floor


def test_the_bound_is_printed_after_holm_and_rows_keep_the_number() -> None:
    rows = compare(queries("a", "b", "c"), ["i2t_MRR"], all_pairs=True, resampling=Resampling(199))
    assert rows["p_at_floor"].tolist() == [True] * 3
    assert rows["p_images_holm"].tolist() == pytest.approx([3 * 2 / 200] * 3)
    table = comparison.build(rows)
    assert table.to_text().count("≤ 0.0300") == 3 and r"$\leq 0.0300$" in table.to_latex()
    assert table.to_frame()["images p"].tolist() == pytest.approx([0.03] * 3)


@each("typed", ["Triplet", "triplet", "Triplet, tau 0.2"])
def test_a_baseline_that_there_is_not_names_those_there_are_and_the_nearest(typed: str) -> None:
    frame = queries("NT-Xent", "Triplet, margin 0.2", "VLC, tau 0.1")
    with pytest.raises(InputError) as error:
        compare(frame, ["i2t_MRR"], typed, resampling=Resampling(199))
    assert '"NT-Xent", "Triplet, margin 0.2", "VLC, tau 0.1"' in str(error.value)
    assert 'Did you mean "Triplet, margin 0.2"?' in str(error.value)


def test_more_than_a_thousand_images_are_no_number_too_large() -> None:
    """A float cannot hold 2^1024 patterns of signs: comparisons of larger test sets ended in an error."""
    differences = np.random.default_rng(0).normal(0.5, 1.0, (1, 1024))
    (test,) = images_test(differences, Resampling(99))
    assert test.p == pytest.approx(2 / 100) and test.p_at_floor
