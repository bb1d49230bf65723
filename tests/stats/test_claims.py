"""Is each pair of systems ordered as the paper prints it, else by our means, and is a tie no ordering?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.stats.claims import Metric, find_claims
from lossscope.tables.orderings import COLUMNS


def ours(numbers: dict[str, tuple[float, ...]], statistic: str = "rsum", direction: str = "both") -> pd.DataFrame:
    """Return the rows of systems: their numbers by seed."""
    rows = [
        {"data": "scenes", "encoder": "VSE++", "objective_label": label, "seed": seed, "direction": direction,
         "probe": "recall", "statistic": statistic, "mean": mean}
        for label, means in numbers.items() for seed, mean in enumerate(means)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def printed(numbers: dict[str, float], statistic: str = "rsum", direction: str = "both") -> pd.DataFrame:
    rows = [
        ("scenes", "VSE++", label, direction, statistic, number, "paper_1", "") for label, number in numbers.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


RSUM = Metric.parse("rsum")


def test_a_printed_ordering_comes_before_ours() -> None:
    claims, _ = find_claims(ours({"A": (1.0, 2.0), "B": (3.0, 3.0)}), printed({"A": 350.4, "B": 337.1}), [RSUM])
    (claim,) = claims.to_dict("records")
    assert (claim["lower"], claim["higher"], claim["origin"], claim["table"]) == ("B", "A", "printed", "paper_1")
    assert (claim["stated_lower"], claim["stated_higher"]) == (337.1, 350.4)


def test_our_ordering_is_of_the_seeds_that_both_have() -> None:
    claims, _ = find_claims(ours({"A": (1.0, 2.0, 90.0), "B": (3.0, 2.0)}), printed({"A": 1.0}), [RSUM])
    (claim,) = claims.to_dict("records")
    assert (claim["lower"], claim["higher"], claim["origin"]) == ("A", "B", "ours")
    assert (claim["stated_lower"], claim["stated_higher"]) == (1.5, 2.5)


def test_equal_printed_numbers_leave_the_ordering_to_ours() -> None:
    claims, _ = find_claims(ours({"A": (4.0,), "B": (3.0,)}), printed({"A": 1.0, "B": 1.0}), [RSUM])
    assert claims[["lower", "higher", "origin"]].to_numpy().tolist() == [["B", "A", "ours"]]


def test_equal_and_undefined_means_are_no_ordering_and_are_named() -> None:
    rows = ours({"A": (2.0,), "B": (2.0,), "C": (np.nan,)})
    claims, notes = find_claims(rows, printed({}), [RSUM])
    assert claims.empty and len(notes) == 3 and notes[0] == "rsum (scenes, VSE++): equal or undefined for A and B"


def test_a_system_without_the_metric_is_named() -> None:
    rows = pd.concat([ours({"A": (1.0,), "B": (2.0,), "C": (2.0,)}), ours({"A": (1.0,)}, "W_neg", "i2t")])
    claims, notes = find_claims(rows, printed({}), [Metric.parse("i2t_W_neg")])
    assert claims.empty and notes == ("i2t_W_neg (scenes, VSE++): not a number of B, C",)


def test_a_count_is_what_the_paper_of_each_loss_prints() -> None:
    """SmoothAP has C_q and NT-Xent has C_neg: the paper compares 1.27 with 9.88."""
    rows = pd.concat([
        ours({"SmoothAP": (2.0,)}, "C_q", "i2t"), ours({"SmoothAP": (1.0,)}, "C_q_all", "i2t"),
        ours({"NT-Xent": (5.0,)}, "C_neg", "i2t"),
    ])  # fmt: skip
    of_paper = pd.concat([printed({"SmoothAP": 1.27}, "C_q", "i2t"), printed({"NT-Xent": 9.88}, "C_neg", "i2t")])
    claims, _ = find_claims(rows, of_paper, [Metric.parse("i2t_count")])
    (claim,) = claims.to_dict("records")
    assert (claim["statistic_lower"], claim["statistic_higher"]) == ("C_q", "C_neg")
    assert (claim["stated_lower"], claim["stated_higher"], claim["origin"]) == (1.27, 9.88, "printed")


def test_the_numbers_of_a_claim_are_of_one_table_where_one_prints_both() -> None:
    two = pd.concat([
        printed({"A": 5.0}).assign(table="paper_1"), printed({"A": 1.0, "B": 2.0}).assign(table="paper_2"),
    ])  # fmt: skip
    claims, _ = find_claims(ours({"A": (1.0,), "B": (1.0,)}), two, [RSUM])
    assert claims[["lower", "higher", "table"]].to_numpy().tolist() == [["A", "B", "paper_2"]]


def test_other_data_and_encoders_are_not_compared() -> None:
    rows = pd.concat([ours({"A": (1.0,)}), ours({"B": (2.0,)}).assign(encoder="VSRN")])
    claims, notes = find_claims(rows, printed({}), [RSUM])
    assert claims.empty and not notes


def test_a_metric_that_no_run_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"--metric must be one that a run has; got i2t_C_9. Runs have rsum$"):
        find_claims(ours({"A": (1.0,)}), printed({}), [Metric.parse("i2t_C_9")])
