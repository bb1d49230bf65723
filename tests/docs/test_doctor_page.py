"""Is docs/doctor.md what its script makes of the findings and of what was measured, and does it say it rightly?"""

from __future__ import annotations

import make_doctor
import numpy as np
import pandas as pd
import pytest

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


def test_auc_counts_ties_by_half() -> None:
    assert make_doctor.auc(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == 0.875
