"""Does `lossscope demo` run its study, write the whole report, and do nothing twice?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.errors import InputError
from lossscope.studies.report import read_runs
from lossscope.studies.study import Study
from lossscope.studies.study_file import StudyGrid, demo_file, read_study_file
from lossscope.studies.worker import work
from tests.blank_pictures import blank_pictures

LOSSES = ["Triplet", "Triplet SH", "NT-Xent", "SmoothAP"]
CHAPTERS = [
    "How well they retrieve",
    "Could it be chance?",
    "Which samples carry the gradient",
    "Which samples",
    "Fewer samples, better recall?",
    "How many count at every eps",
    "Counts at other temperatures",
    "How the similarities moved",
    "Similarities and gradients of single queries",
    "How hard each loss pushes",
    "What is wrong with the runs?",
    "The weights of GOAL",
    "The runs",
    "How to cite",
]
SMALLER = (
    (r"train=500,val=100,test=100,size=32", "train=24,val=8,test=8,size=16"),
    (r"width=16,dim=128,words=64", "width=4,dim=16,words=8"),
    (r"epochs = \d+", "epochs = 2"),
    (r"warmup = \d+", "warmup = 1"),
    (r"batch_size = \d+ }", "batch_size = 8 }"),
    (r"(?m)batch_size = \d+$", "batch_size = 16"),
)


@pytest.mark.parametrize("quick", [False, True])
def test_the_study_has_four_losses_and_one_run_on_ambiguous_captions(quick: bool) -> None:
    grid = read_study_file(demo_file(quick), seeds=(3,))
    assert grid.about.endswith("?")
    assert [run.objective_label for run in grid.runs if run.data == "scenes"] == LOSSES
    (ambiguous,) = [run for run in grid.runs if run.data != "scenes"]
    assert ambiguous.objective_label == "Triplet SH" and "ambiguity=0.9" in ambiguous.recipe.data
    assert len({run.recipe.encoder for run in grid.runs}) == 1 and {run.seed for run in grid.runs} == {3}
    assert grid.report.figures == ("goal",) and grid.report.objectives == ("unified",)
    assert {"released", "text"} == set(grid.examine.conventions)


def test_the_quick_study_is_the_same_and_smaller() -> None:
    def without_sizes(grid: StudyGrid) -> StudyGrid:
        sizes = {"data": "", "encoder": "", "epochs": 1, "warmup": 0, "batch_size": 2}
        runs = tuple(replace(run, recipe=replace(run.recipe, **sizes)) for run in grid.runs)
        return replace(grid, name="", runs=runs)

    whole, quick = (read_study_file(demo_file(quick)) for quick in (False, True))
    assert without_sizes(whole) == without_sizes(quick)
    assert all(a.recipe.batch_size >= b.recipe.batch_size for a, b in zip(whole.runs, quick.runs, strict=True))


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the quick study on a few pictures with a narrow model."""
    text = demo_file(quick=True).read_text(encoding="utf-8")
    for old, new in SMALLER:
        text, replaced = re.subn(old, new, text)
        assert replaced, old
    path = tmp_path_factory.mktemp("demo-file") / "demo.toml"
    path.write_text(text, encoding="utf-8")
    return path


class InThisProcess:
    """A job that ended; tests/studies/launchers tests jobs as processes."""

    def __init__(self, _launcher: object, arguments: Sequence[str], log: Path) -> None:
        _study, _worker, folder, key, *_device = arguments
        work(Path(folder), key)

    def poll(self) -> int:
        return 0

    def last(self) -> str:
        return ""


@pytest.fixture(scope="module")
def folder(small_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the command; tests must not write to it."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch, blank_pictures():
        patch.setattr("lossscope.studies.study_file.demo_file", lambda quick, data: small_file)
        patch.setattr("lossscope.studies.launchers.local.Local.start", lambda *given: InThisProcess(*given))
        result = CliRunner().invoke(app, ["demo", "--quick", "--out", str(out), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out / "report" / "index.html")
    return out


def test_the_report_has_every_chapter(folder: Path) -> None:
    report = folder / "report"
    listing = json.loads((report / "index.json").read_text(encoding="utf-8"))
    assert [section["title"] for section in listing["sections"]] == CHAPTERS
    items = {section["title"]: section["items"] for section in listing["sections"]}
    tables = ("retrieval", "cocos_triplet", "cocos_softmax", "cocos_smoothap", "count_recall_numbers", "training_end")
    for name in tables:
        assert (report / "csv" / f"{name}.csv").is_file() and (report / "latex" / f"{name}.tex").is_file()
    pictures = ("triplet_weights", "pair_weights", "fields", "count_recall", "weight_mass-1", "what_if-1", "training-1")
    for name in pictures:
        assert (report / "figures" / f"{name}.png").is_file() and (report / "latex" / f"{name}.pdf").is_file()
    assert items["The weights of GOAL"] == ["triplet_weights", "pair_weights", "xuan2023_1"]
    assert {"eps", "eps_curve-1"} <= set(items["How many count at every eps"])
    assert {"tau", "what_if-1"} <= set(items["Counts at other temperatures"])
    assert {"separation-1", "separation-2"} <= set(items["How the similarities moved"])


def test_the_page_says_what_was_run(folder: Path) -> None:
    text = (folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "What four losses do to the same model" in text
    assert "5 runs, 4 objectives, 1 model, 2 data sets, 1 seed" in text
    assert text.count('<option value="0">') and "unified" in text  # whose weight field stands beside the others
    assert all(loss in text for loss in LOSSES)


def test_the_numbers_of_the_page_are_those_of_the_runs(folder: Path) -> None:
    rows = read_runs([folder / "study"]).rows
    rsum = rows[(rows["statistic"] == "rsum") & (rows["probe"] == "recall")]
    table = pd.read_csv(folder / "report" / "csv" / "retrieval.csv")
    assert table["rsum"].tolist() == pytest.approx(rsum["mean"].tolist())
    assert {"corrected", "released", "text"} <= set(rows["convention"].dropna())
    assert len(list(folder.glob("study/runs/*/run/best.pt"))) == 5


def test_a_finished_demo_is_not_trained_again(folder: Path, small_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(folder.glob("study/runs/*/run/**/*.pt"))
    before = {path: path.stat().st_mtime_ns for path in files}
    monkeypatch.setattr("lossscope.studies.study_file.demo_file", lambda quick, data: small_file)
    monkeypatch.setattr("lossscope.studies.report.report", lambda paths, out, *_, **options: out / "index.html")
    result = CliRunner().invoke(app, ["demo", "--quick", "--out", str(folder), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert before and {path: path.stat().st_mtime_ns for path in files} == before


def test_a_demo_with_other_choices_in_the_same_folder_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="must keep the choices it began with"):
        Study.begin(folder / "study", read_study_file(demo_file(quick=True)))
