"""Which evaluations are equal by chance, and which are not?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lossscope
from lossscope.doctor.equal_evaluations import EqualEvaluations, longest_run


@pytest.mark.parametrize("value", [0.9, 85.0, 0.8235, 14 / 17, 963 / 1014, 31 / 2000, 0.949704, 1.0, 0.0, np.nan])
def test_shares_of_few_items_rounded_numbers_and_bounds_may_come_again(value: float) -> None:
    assert not EqualEvaluations().is_telling(value)


def test_numbers_with_many_digits_do_not_come_again() -> None:
    values = np.random.default_rng(0).random(300).tolist()
    assert all(EqualEvaluations().is_telling(value) for value in values)
    assert all(EqualEvaluations().is_telling(100 * value) for value in values)


def test_the_longest_run_is_of_rows_that_are_equal_in_all_columns() -> None:
    table = pd.DataFrame({"a": [1, 2, 2, 2, 2, 3.0], "b": [1, 1, 2, 2, 2, 3.0], "c": [np.nan] * 6})
    assert longest_run(table) == (2, 4)
    assert longest_run(pd.DataFrame({"a": [1, 2, 3.0]})) == (0, 0)


def _ids(folder: Path, name: str, rates: object, number: int) -> tuple[str, ...]:
    frame = pd.DataFrame({"step": np.arange(100), "loss": np.linspace(4, 1, 100), "lr": rates, name: np.nan})
    frame.loc[99 - 5 * np.arange(8), name] = np.linspace(0.512345678912345, 0.31, 8)
    frame.loc[99 - 5 * np.arange(number), name] = 0.512345678912345
    frame.to_csv(folder / "log.csv", index=False)
    return tuple(
        finding.id for finding in lossscope.doctor(log=folder / "log.csv").findings if finding.id == "equal-evaluations"
    )


def test_a_few_rankings_may_stay_and_a_loss_may_not(tmp_path: Path) -> None:
    assert _ids(tmp_path, "eval_ndcg@10", 1e-4, 4) == () == _ids(tmp_path, "eval_loss", 1e-4, 2)
    assert _ids(tmp_path, "eval_ndcg@10", 1e-4, 5) == ("equal-evaluations",) == _ids(tmp_path, "eval_loss", 1e-4, 3)


def test_a_rate_of_nothing_at_the_end_of_a_schedule_explains_equal_ones(tmp_path: Path) -> None:
    assert _ids(tmp_path, "eval_loss", np.where(np.arange(100) < 80, 1e-4, 1e-8), 3) == ()
