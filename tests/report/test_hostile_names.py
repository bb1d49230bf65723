"""Are names of others shown as text by a whole report: its page in a browser, its LaTeX, CSV and JSON?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.io.csv_tables import read_csv
from lossscope.report.build import write_report
from lossscope.report.results import Results, RunRecord, read_results
from lossscope.studies.report import diagrams, read_runs
from lossscope.studies.report import report as write_study_report
from lossscope.studies.report_options import ReportOptions
from lossscope.visible_text import show_text
from tests.blank_pictures import blank_pictures
from tests.chromium import in_browser, watch
from tests.hostile_names import CONTROLS, HOSTILE
from tests.pdflatex import compile_latex
from tests.tiny import run_study

pytestmark = pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout")
TITLE = " ".join(HOSTILE)
LOSSES = [" ".join(HOSTILE[start::4]) for start in range(4)]  # a label for each run
NAMED = """
name = "tiny"
[recipe]
epochs = 1
batch_size = 16
[[data]]
name = "a: <b>$5$</b>"
spec = "scenes:train=24,val=8,test=10,size=16"
[[encoders]]
name = "VSE++: ours"
spec = "vsepp:width=4,dim=8,words=8"
[[objectives]]
name = '$\\frac$ ntxent: =ours, $y'
spec = "ntxent"
[examine]
probes = ["cocos:eps=0.01", "similarity"]
what_if = ""
"""


def _records(results: Results, study: Path) -> list[RunRecord]:
    """Return the runs of a study with hostile labels."""
    records = []
    for number, row in enumerate(results.runs.to_dict("records")):
        run = next(path for path in (study / "runs").glob("*/run") if path.parent.name == row["run"])
        records.append(
            RunRecord(
                run=f"{number} {HOSTILE[number]}", path=run, data=HOSTILE[12],
                encoder=HOSTILE[13], objective_label=LOSSES[number], spec=row["spec"],
                seed=row["seed"], recipe=results.recipes[row["run"]],
            )
        )  # fmt: skip
    return records


@pytest.fixture(scope="module")
def report(tiny_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report whose every name is hostile; return its folder."""
    results = read_results(_records(read_runs([tiny_study]), tiny_study), name=TITLE)
    with blank_pictures():  # tests/plots/test_hostile_names.py draws them
        page = write_report(results, diagrams(results), tmp_path_factory.mktemp("report"), None, TITLE, resamples=99)
    return page.parent


def test_no_file_of_a_report_has_control_characters(report: Path) -> None:
    for file in [file for file in report.rglob("*") if file.suffix in (".html", ".tex", ".csv", ".json", ".svg")]:
        assert not set(file.read_text(encoding="utf-8")) & set(CONTROLS), file


def test_no_cell_of_a_report_is_a_formula(report: Path) -> None:
    for file in (report / "csv").glob("*.csv"):
        for column in pd.read_csv(file, dtype=str, keep_default_na=False).to_numpy().T:
            assert not [cell for cell in column if cell[:1] in ("=", "+", "@")], file
        assert len(read_csv(file))


@in_browser
@pytest.mark.thorough
def test_the_page_runs_no_script_and_makes_no_request_of_a_name(browser: Any, report: Path) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    messages, requests = watch(page)
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.goto((report / "index.html").as_uri())
    page.wait_for_selector('html[data-ready="yes"]')
    page.evaluate("document.querySelectorAll('main details').forEach((item) => { item.open = true; })")
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    for chart in page.locator("[data-slider] input").all():
        chart.press("ArrowRight")
    page.wait_for_timeout(300)
    assert messages == [] and page.evaluate("window.stolen") is None
    assert all(url.startswith(("file://", "data:", "blob:")) for url in requests), requests
    assert [url for url in requests if url.startswith("file://")] == [(report / "index.html").as_uri()]
    made = "iframe, object, embed, form, base, link, [onerror], [onload], img[src='x'], a[href^='http'], figure a"
    assert page.locator(made).count() == 0
    assert page.locator("h1 *, td b, th b, option *, figcaption *").count() == 0
    legend = " ".join(page.locator(".legendtext").all_text_contents())
    assert "<b>bold</b>" in legend and "&lt;i&gt;%{y}<extra>" in legend and r"$\frac$ and $x_{$" in legend
    assert "script" in page.locator("h1").inner_text() and "&lt;i&gt;" in page.locator("h1").inner_text()
    shown = " ".join(show_text(TITLE).split())
    assert " ".join(page.title().split()).endswith(shown)
    context.close()


def test_the_latex_of_a_report_compiles_and_reads_no_other_file(report: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(report / "latex", tmp_path / "latex"))
    before = {file.name for file in folder.iterdir()}
    compile_latex(folder, "-shell-escape", "-recorder")
    assert "/etc/passwd" not in (folder / "main.fls").read_text(encoding="utf-8")
    assert {file.name for file in folder.iterdir()} - before <= {f"main.{end}" for end in ("aux", "log", "pdf", "fls")}


@pytest.mark.usefixtures("blank_pictures")
def test_names_in_a_study_are_no_specs(tmp_path: Path) -> None:
    """The report read `VSE++: ours` as a spec, and refused it."""
    page = write_study_report([run_study(tmp_path, NAMED).path], tmp_path / "report", ReportOptions(resamples=99))
    assert "VSE++: ours" in page.read_text(encoding="utf-8")
