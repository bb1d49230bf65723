"""Is docs/doctor.md what its script makes of findings and measurements, and are its sentences true?"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import make_doctor
import numpy as np
import pandas as pd
import pytest

from lossscope.doctor.base import Check
from lossscope.registry import names


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_doctor.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_every_finding_has_a_row_and_a_section() -> None:
    page = make_doctor.PAGE.read_text(encoding="utf-8")
    for name in names("findings"):
        id = name.replace("_", "-")
        assert f"| [`{id}`](#{id}) |" in page and f"\n### {id}\n" in page


def test_what_was_measured_is_what_was_promised() -> None:
    wall, planted = (pd.read_csv(make_doctor.RESULTS / f"{name}.csv") for name in ("wall", "planted"))
    found = wall["findings"].fillna("")
    assert len(wall) >= 100
    assert not found.str.contains(" error").any() and found.str.count(" warning").sum() <= 2
    sick = planted[planted["planted"] == "sick"]
    assert (sick["first"] == sick["id"]).all()
    assert planted.loc[planted["planted"] == "healthy", "alarms"].isna().all()
    assert {name.replace("_", "-") for name in names("findings")} - set(sick["id"]) == {
        "cached-gradient-differs", "gather-without-gradient", "labels-without-offset",
    }  # fmt: skip


def test_the_command_that_made_recall_worse_is_on_the_page() -> None:
    page = make_doctor.PAGE.read_text(encoding="utf-8")
    assert "`--mask percent:share=0.9`" in page and "67.2 to 54.2" in page


def test_it_is_right_on_kinds_of_data_that_no_threshold_was_set_on() -> None:
    rows = pd.read_csv(make_doctor.RESULTS / "kinds.csv", keep_default_na=False)
    sick, healthy = rows[rows["planted"] != ""], rows[rows["planted"] == ""]
    assert len(sick) >= 60 and len(healthy) >= 80
    assert set(sick["kind"]) == set(healthy["kind"]) and sick["kind"].value_counts().min() >= 6
    assert sick["right"].mean() >= 0.9
    assert (~healthy["right"]).mean() <= 0.01


def test_the_table_of_kinds_counts_each_kind_and_names_what_is_not_right() -> None:
    rows = pd.DataFrame(
        [
            ("a", "one", "hubness", "findings", "hubness", True),
            ("a", "two", "order-lost no-learning", "no problem found", None, False),
            ("b", "three", None, "findings", "hubness", False),
            ("b", "four", None, "cannot explain", None, True),
        ],
        columns=["kind", "name", "planted", "verdict", "first", "right"],
    )
    lines = make_doctor.kinds(rows).splitlines()
    assert lines[2:5] == ["| a | 1 of 2 | 0 of 0 | 0 of 0 |", "| b | 0 of 0 | 1 of 2 | 1 of 2 |",
                          "| all | 1 of 2 | 1 of 2 | 1 of 2 |"]  # fmt: skip
    assert lines[-2:] == [
        "- a, two: no problem found; planted `order-lost` or `no-learning`.",
        "- b, three: `hubness` first; healthy.",
    ]


def test_auc_counts_ties_by_half() -> None:
    assert make_doctor.auc(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == 0.875


def test_advice_closes_the_gap_to_the_healthy_twin_in_four_of_five_runs_that_a_fault_hurt() -> None:
    rows = pd.read_csv(make_doctor.RESULTS / "advice.csv")
    closed = make_doctor.gaps_closed(rows).dropna()
    assert len(closed) >= 16 and (closed >= make_doctor.CLOSED).mean() >= 0.8
    assert rows["found"].all() and not rows["found_after"].any()


def test_every_finding_that_gives_a_command_to_train_again_is_tried() -> None:
    helpers = r"(train|warmup|margin|temperature)_command|(decay|rate|least|warmup)_advice"
    commands = re.compile(rf"{helpers}|lossscope train --")
    files = Path(inspect.getfile(Check)).parent.glob("[a-z]*.py")
    giving = {path.stem.replace("_", "-") for path in files if commands.search(path.read_text(encoding="utf-8"))}
    assert giving == set(pd.read_csv(make_doctor.RESULTS / "advice.csv")["id"])


def test_a_fault_without_a_command_closes_no_gap_and_one_that_does_not_hurt_has_none() -> None:
    rows = pd.DataFrame({"before": [10.0, 10.0, 10.0], "after": [50.0, np.nan, 9.0], "twin": [60.0, 60.0, 14.0]})
    assert make_doctor.gaps_closed(rows).tolist()[:2] == [0.8, 0.0]
    assert make_doctor.gaps_closed(rows).isna().tolist() == [False, False, True]
