"""How often do two pairs of different items have the same item of one side?"""

from __future__ import annotations

import numpy as np
import pytest

from lossscope.doctor.parts.copies import side_copies


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("side", [0, 1])
def test_the_probability_is_that_of_counting_every_two_pairs(seed: int, side: int) -> None:
    """The count leaves out two pairs that share the item of this side, of the other side, or of both."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 6, 20)
    pairs = rng.integers(0, 20, (60, 2))
    found = side_copies(numbers, pairs, side, "images", [str(row) for row in range(20)], "input")
    items, other, key = pairs[:, side], pairs[:, 1 - side], numbers[pairs[:, side]]
    equal = sum(
        key[i] == key[j] and items[i] != items[j] and other[i] != other[j]
        for i in range(60)
        for j in range(60)
        if i != j
    )
    assert equal and found.probability == pytest.approx(equal / (60 * 59))
