"""Is docs/audit.md what its script makes of the signals and of what was measured, and is that what was promised?"""

from __future__ import annotations

import make_audit
import pandas as pd
import pytest

from lossscope.registry import names


def results(name: str) -> pd.DataFrame:
    return pd.read_csv(make_audit.RESULTS / f"{name}.csv", keep_default_na=name != "mask_worth")


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_audit.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_every_signal_has_a_row() -> None:
    page = make_audit.PAGE.read_text(encoding="utf-8")
    assert all(page.count(f"| `{name}` | {group} |") == 1 for name, group in _groups().items())


def _groups() -> dict[str, str]:
    from lossscope.registry import build

    return {name: make_audit.GROUPS[build("signals", name).group] for name in names("signals")}


def test_probabilities_agree_with_people() -> None:
    rows = results("judgements")
    rows = rows[rows["scored by"] == "cross-validated"].set_index(["judgements", "signals"])
    assert rows.loc[("expert", "texts"), "AUC"] > 0.94 and rows.loc[("crowd", "texts"), "AUC"] > 0.90
    assert (rows["calibration error"] < 0.01).all()


def test_the_interval_has_the_true_rate_of_nine_in_ten_data_sets() -> None:
    of_data = results("interval_coverage").groupby("data")["inside"]
    assert (of_data.size() == 20).all() and (of_data.mean() >= 0.9).all()


def test_the_mask_of_a_labelled_audit_closes_most_of_the_gap_of_scenes() -> None:
    rows = results("mask_worth")
    for objective, own in rows[rows["data"] == "scenes"].groupby("objective"):
        assert make_audit.gap(own, "audit and 100 labels") >= 0.6, objective


def test_the_gap_is_that_of_means_over_seeds() -> None:
    own = pd.DataFrame({"mask": ["none", "none", "perfect", "half"], "mAP_truth": [0.1, 0.3, 0.4, 0.3]})
    assert make_audit.gap(own, "half") == pytest.approx(0.5)
