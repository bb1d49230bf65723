"""Does docs/diff.md show what was measured, and do the measurements support its claims?"""

from __future__ import annotations

import make_diff
import pandas as pd
import pytest


def results(name: str) -> pd.DataFrame:
    return pd.read_csv(make_diff.RESULTS / name, keep_default_na=False)


def test_the_page_is_that_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_diff.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_false_alarms_of_what_the_page_shows_are_3_to_7_of_100() -> None:
    """At least 3, give or take the uncertainty of 2,000 replicates; never above 7."""
    rows = results("diff_coverage.csv")
    none = rows[rows["noise_of_b"] == 1]
    shown = none[[statistic in make_diff.ALARMS.get(objective, ()) for objective, statistic in
                  zip(none["objective"], none["statistic"], strict=True)]]  # fmt: skip
    assert (shown["replicates"] >= 2000).all()
    lowest = 3 - 1.96 * (3 * 97 / shown["replicates"]) ** 0.5
    outside = shown[(shown["excludes_0"] < lowest) | (shown["excludes_0"] > 7.0)]
    assert outside.empty, outside.to_string()


def test_what_the_page_says_in_words_is_in_the_results() -> None:
    rows = results("diff_demo.csv").set_index(["comparison", "direction", "statistic"])
    inverted = rows.loc[("epoch 2", "t2i", "inverted")]
    assert float(inverted["low"]) < 0 < float(inverted["high"])
    for direction in ("i2t", "t2i"):
        of_dropout = rows.loc[("dropout", direction, "C_neg")]
        assert 0 < float(of_dropout["low"]) < 0.1 < float(of_dropout["difference"]) < 0.15
        of_norm = rows.loc[("batch norm", direction, "C_neg")]
        assert float(of_norm["low"]) < 0 < float(of_norm["high"])
        assert abs(float(rows.loc[("epoch 6", direction, "s_pos"), "mean"])) < 0.02  # collapsed
