"""Does docs/intervals.md show what was measured, and do the measurements support its claims?"""

from __future__ import annotations

import make_intervals
import pandas as pd
import pytest


def rows() -> pd.DataFrame:
    results = pd.read_csv(make_intervals.RESULTS, keep_default_na=False)
    shown = pd.Series(make_intervals.SHOWN)
    return results[results["statistic"].isin(shown.index) & (results["objective"] == results["statistic"].map(shown))]


def test_the_page_is_that_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_intervals.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_intervals_hold_in_92_to_98_of_100_cases() -> None:
    shown = rows()
    assert (shown["replicates"] >= 2000).all()
    outside = shown[(shown["coverage"] < 92) | (shown["coverage"] > 98)]
    assert outside.empty, outside.to_string()


def test_batches_alone_say_too_little_where_there_are_hubs() -> None:
    shown = rows()
    strong = shown[(shown["hubs"] == "strong") & shown["statistic"].isin(["C_neg", "C_q"])]
    assert len(strong) and (strong["coverage_batches"] < 90).all()
