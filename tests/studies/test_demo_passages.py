"""Does `lossscope demo --data passages` do the main job on text, in the words of queries and documents?"""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.studies.report import report
from lossscope.studies.report_options import ReportOptions
from lossscope.studies.study import Study
from lossscope.studies.study_file import StudyGrid, demo_file, read_study_file
from lossscope.studies.worker import work
from tests.blank_pictures import blank_pictures

SMALLER = (
    (r"train=300,val=80,test=80", "train=40,val=16,test=16"),
    (r"dim=64,words=64", "dim=16,words=8"),
    (r"epochs = \d+", "epochs = 2"),
    (r"batch_size = \d+ }", "batch_size = 8 }"),
    (r"(?m)batch_size = \d+$", "batch_size = 16"),
)
OF_IMAGES = r"\b(images?|captions?|rsum|i2t|t2i)\b"
CHOICES = ("same-image", "val-images", "select-by rsum")  # names of options, in the table of choices


def test_the_quick_study_is_the_same_and_smaller() -> None:
    def without_sizes(grid: StudyGrid) -> StudyGrid:
        sizes = {"data": "", "encoder": "", "epochs": 1, "batch_size": 2, "lr": 0.1}
        return replace(
            grid, name="", runs=tuple(replace(run, recipe=replace(run.recipe, **sizes)) for run in grid.runs)
        )

    whole, quick = (read_study_file(demo_file(quick, "passages")) for quick in (False, True))
    assert without_sizes(whole) == without_sizes(quick)
    assert [run.objective_label for run in whole.runs if not run.recipe.mask] == [
        "Triplet", "Triplet SH", "NT-Xent", "SupCon"
    ]  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of the quick study, on a few questions with a narrow model."""
    folder = tmp_path_factory.mktemp("demo-passages")
    text = demo_file(quick=True, data="passages").read_text(encoding="utf-8")
    for old, new in SMALLER:
        text, replaced = re.subn(old, new, text)
        assert replaced, old
    (folder / "demo.toml").write_text(text, encoding="utf-8")
    study = Study.begin(folder / "study", read_study_file(folder / "demo.toml"))
    for run in study.grid.runs:
        work(study.path, run.key)
    with blank_pictures():
        return report([study.path], folder / "report", ReportOptions(title="Text", resamples=99))


@pytest.mark.thorough
def test_the_page_speaks_of_queries_and_documents(page: Path) -> None:
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
    for choice in CHOICES:
        words = words.replace(choice, "")
    assert re.findall(OF_IMAGES, words) == []
    assert "test queries" in words
    assert "nDCG@10" in words
    assert "q2d" in words and "d2q" in words
    assert "How often a document is the hardest negative of a query" in words
    assert "of the pairs of a query and a document that is not its positive" in words or "Share of pairs of" in words


@pytest.mark.thorough
def test_files_name_what_they_hold(page: Path) -> None:
    folder = page.parent
    for file in folder.rglob("*.csv"):
        frame = pd.read_csv(file)
        assert "rsum" not in frame.columns, file
        if "direction" in frame:
            assert set(frame["direction"].dropna()) <= {"q2d", "d2q", "both"}, file
    listed = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    assert listed
