"""Do labels and the choice of columns reach the page, LaTeX and CSV?"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from lossscope.studies.report import report
from lossscope.tables.choice import Choice


def test_labels_columns_and_published_numbers(tiny_study: Path, tmp_path: Path) -> None:
    first = next((tiny_study / "runs").iterdir()).name
    out = tmp_path / "report"
    report([tiny_study], out, resamples=99, labels=(f"{first}=My loss",), choice=Choice(("R@1", "rsum"), False))
    tables = {path.stem: path.read_text(encoding="utf-8") for path in (out / "latex").glob("*.tex")}
    assert "My loss" in "".join(tables.values()) and "My loss" in (out / "index.html").read_text(encoding="utf-8")
    (name,) = [name for name in tables if re.fullmatch(r"retrieval|\w+_1-t2i", name)]
    assert "R@5" not in tables[name] and "R@1" in tables[name]
    assert not any("& published" in text for text in tables.values())
    with (out / "csv" / f"{name}.csv").open(encoding="utf-8") as file:
        assert any("R@5" in heading for heading in next(csv.reader(file)))
