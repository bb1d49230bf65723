"""Does the table of a multiverse have each claim with its share, what is undefined, and the levels that overturn it?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import multiverse

LEVELS = [(eps, seed) for eps in (0.01, 0.1) for seed in (0, 1)]


def rows(holds=(True, True, False, False), lower="SmoothAP", **more) -> pd.DataFrame:
    """Return four universes of a claim: eps 0.01 with two seeds, eps 0.1 with two seeds."""
    constant = {
        "study": "small", "data": "scenes", "encoder": "VSE++", "metric": "t2i_count", "lower": lower,
        "higher": "Triplet", "origin": "printed", "stated_lower": 1.47, "stated_higher": 6.11, "note": "",
        "convention": "corrected", "unit": "paper", "batch": 1.0, "epoch": "best", "reason": "", "split": "train",
    }  # fmt: skip
    lines = [{"eps": eps, "seed": seed, "holds": held} for (eps, seed), held in zip(LEVELS, holds, strict=True)]
    return pd.DataFrame(lines).assign(**constant, difference=[1.0, 1.0, 0.0, -1.0]).assign(**more)


def text(frame: pd.DataFrame) -> str:
    return " ".join(" ".join(table.to_text(200) for table in multiverse.build(frame)).split())


def test_a_line_is_a_claim_with_its_share() -> None:
    claims, levels = (table.to_frame() for table in multiverse.build(pd.concat([rows(), rows([True] * 4, "NT-Xent")])))
    assert claims["claim"].tolist() == ["SmoothAP < Triplet", "NT-Xent < Triplet"]
    assert claims["holds"].tolist() == ["2 of 4", "4 of 4"] and claims["%"].tolist() == [50, 100]
    assert claims["stated"].tolist() == ["1.47 < 6.11"] * 2 and claims["tie"].tolist() == [1, 1]
    assert claims["most decisive"].tolist() == ["eps 100 %", "none"]
    assert claims["fails at"].tolist() == ["eps 0.1", "none"]
    np.testing.assert_allclose(levels[["eps 0.01", "eps 0.1", "seed 0"]], [[100, 0, 50], [100, 100, 100]])


def test_a_claim_that_fails_everywhere_says_all() -> None:
    (line,) = multiverse.build(rows([False] * 4))[0].to_frame()["fails at"]
    assert line == "all"


def test_undefined_universes_are_counted_with_their_reason() -> None:
    reason = "smoothap: weights in the unit relative need a loss whose weight saturates"
    frame = rows((True, None, None, False), reason=["", reason, reason, ""])
    claims = multiverse.build(frame)[0].to_frame()
    assert claims["holds"].tolist() == ["1 of 2"] and claims["undefined"].tolist() == [2]
    assert f"Undefined universes: 2 times: {reason}." in text(frame)


def test_the_caption_says_what_the_universes_are_and_that_no_p_value_follows() -> None:
    shown = text(rows())
    assert "1 claim, 1 printed by the paper and 0 ours; 4 comparisons" in shown and "no p-value" in shown
    assert "eps 0.01, 0.1" in shown and "split train" in shown


def test_an_error_in_a_printed_number_is_named_once_for_its_claims() -> None:
    note = "The released counter is wrong (E2)."
    shown = text(pd.concat([rows(note=note), rows(lower="NT-Xent", note=note)]))
    assert shown.count(note) == 1
    assert f"Printed numbers of t2i_count SmoothAP < Triplet, t2i_count NT-Xent < Triplet: {note}" in shown


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="Add origin"):
        multiverse.build(rows().drop(columns="origin"))
