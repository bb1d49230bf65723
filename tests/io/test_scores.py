"""Must runs that are compared by a score have the same kind of sides, and its score?"""

from __future__ import annotations

import pytest

from lossscope.errors import InputError
from lossscope.io.scores import require_one_score

PICTURES = ("epoch", "loss", "i2t_R@1", "t2i_R@1", "rsum")
DOCUMENTS = ("epoch", "loss", "q2d_nDCG@10", "d2q_nDCG@10")


def test_runs_of_different_sides_are_refused_in_a_trajectory() -> None:
    with pytest.raises(InputError, match=r"must be of the same sides; got rsum of a and q2d_nDCG@10 of b. Draw them"):
        require_one_score({"a": PICTURES, "b": DOCUMENTS})
    with pytest.raises(InputError, match=r"got q2d_nDCG@10 of b and rsum of c"):
        require_one_score({"b": DOCUMENTS, "c": PICTURES, "a": PICTURES})


@pytest.mark.parametrize("columns", [PICTURES, DOCUMENTS])
def test_runs_of_the_same_sides_are_drawn_together(columns: tuple[str, ...]) -> None:
    require_one_score({"a": columns, "b": columns})
    require_one_score({"a": columns})
