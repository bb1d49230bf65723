"""At which step did the loss leave its band?"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import lossscope
from tests.planted import diverged
from tests.planted.base import SIZES, log


def _step(path: str, **options: object) -> int:
    found = lossscope.doctor(log=path, **options).findings[0]
    match = re.search(r"at step ([\d,]+)", found.title)
    assert found.id == "diverged" and match is not None
    return int(match[1].replace(",", ""))


@pytest.mark.parametrize("left", [500, 1000, 1400])
def test_the_step_is_that_at_which_the_loss_left_not_that_of_its_best(left: int, tmp_path: Path) -> None:
    """The lowest window covers steps 300 to 350; the loss stays near it until it leaves."""
    loss = np.concatenate([np.linspace(4, 1, 300), np.full(1700, 1.03)]) + 0.01 * np.sin(np.arange(2000))
    loss[300:350] -= 0.03
    loss[left:] = 5
    path = log(tmp_path, loss=loss)
    assert _step(path) == pytest.approx(left, abs=50)


def test_the_step_of_a_slow_climb_is_where_it_begins(tmp_path: Path) -> None:
    case = diverged.climb(SIZES[0], tmp_path)
    assert _step(path=case.options["log"], batch_size=case.options["batch_size"]) == pytest.approx(205, abs=15)
