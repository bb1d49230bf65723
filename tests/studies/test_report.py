"""Is the page of a study or a run folder complete, with a gap or a message for missing numbers?"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.evaluation_folder import frames_of, read_frame, write_evaluation
from lossscope.io.json_files import read_json
from lossscope.io.run_folder import Run
from lossscope.report.build import gather, paper_tables
from lossscope.report.page import require_page_folder
from lossscope.studies.examine import examine
from lossscope.studies.report import diagrams, read_runs, report
from lossscope.studies.report_options import ReportOptions
from lossscope.studies.study_file import ExamineConfig, ReportConfig
from tests.pdflatex import compile_latex, overfull

CONFIG = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())
SPECIAL = r"100% of a_b & {c} #1 $x^2~\d <e> τ"


@pytest.fixture(scope="module")
def page(tiny_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of the whole study, with its pictures."""
    return report([tiny_study], tmp_path_factory.mktemp("report") / "new" / "out", ReportOptions(resamples=99))


@pytest.fixture
def study(tiny_study: Path, tmp_path: Path) -> Path:
    """Return a copy that tests may write to."""
    return Path(shutil.copytree(tiny_study, tmp_path / "study"))


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """Return a run folder without an evaluation."""
    return Path(shutil.copytree(tiny_run, tmp_path / "alone"))


def run_folders(study: Path) -> list[Path]:
    return sorted((study / "runs").iterdir())


def rewrite(folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame], kind: str = "rows") -> None:
    """Replace a frame of an evaluation by a changed one."""
    run = folder / "run"
    frames: dict[str, Any] = {name: read_frame(run, name) for name in frames_of(run)}
    write_evaluation(run, {**frames, kind: change(frames[kind])}, read_json(run / "evaluation" / "manifest.json"))


def test_the_report_is_complete(page: Path, tiny_study: Path) -> None:
    out = page.parent
    assert page.name == "index.html"
    listing = json.loads((out / "index.json").read_text(encoding="utf-8"))
    for folder, ending in (("csv", ".csv"), ("figures", ".png"), ("latex", ".tex"), ("latex", ".pdf")):
        assert list((out / folder).glob(f"*{ending}")), folder
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {entry["path"] for entry in listing["files"]} >= {name for name in written if name != "index.json"}
    provenance = listing["provenance"]
    assert provenance["command"] == f"lossscope report {tiny_study.name}" and provenance["eps"] == "0.01"
    assert provenance["seeds"] == "0, 1" and "torch" in provenance["versions"] and provenance["data"] == "scenes"
    assert "counted: train; ranked: test" in provenance["splits"]
    text = page.read_text(encoding="utf-8")
    assert "4 runs, 2 objectives, 1 model, 1 data set, 2 seeds" in text and "lossscope: tiny" in text
    assert page.stat().st_size < 6_000_000


def test_every_number_of_the_page_is_in_the_csv(page: Path, tiny_study: Path) -> None:
    table = pd.read_csv(page.parent / "csv" / "retrieval.csv")
    rows = read_runs([tiny_study]).rows.query("statistic == 'rsum'")
    rsum = rows.groupby("objective_label", sort=False)["mean"].mean()
    assert table["rsum"].tolist() == pytest.approx(rsum.tolist())


def test_the_latex_of_a_study_compiles_without_warnings(page: Path, tmp_path: Path) -> None:
    shutil.copytree(page.parent / "latex", tmp_path / "latex")
    log = compile_latex(tmp_path / "latex", runs=2)
    assert "multiply defined" not in log and "undefined references" not in log
    assert overfull(log) < 5


def test_the_same_study_gives_the_same_tables_numbers_and_words(page: Path, tiny_report: Path) -> None:
    compared = [file for file in tiny_report.parent.rglob("*") if file.suffix in (".csv", ".tex", ".parquet")]
    assert len(compared) > 20
    for file in compared:
        assert file.read_bytes() == (page.parent / file.relative_to(tiny_report.parent)).read_bytes(), file


@pytest.mark.thorough
def test_the_same_study_gives_the_same_bytes(page: Path, tiny_study: Path, tmp_path: Path) -> None:
    again = report([tiny_study], tmp_path / "again", ReportOptions(resamples=99))
    assert again.read_bytes() == page.read_bytes()


@pytest.mark.usefixtures("blank_pictures")
def test_labels_with_special_characters_of_latex_or_html_stay_text(study: Path, tmp_path: Path) -> None:
    document = json.loads((study / "study.json").read_text(encoding="utf-8"))
    document["name"] = SPECIAL
    for run in document["runs"]:
        run["objective_label"] = run["objective_label"].replace("Triplet", SPECIAL)
    (study / "study.json").write_text(json.dumps(document), encoding="utf-8")
    page = report([study], tmp_path / "out", ReportOptions(resamples=99))
    text = page.read_text(encoding="utf-8")
    assert "<e>" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "&lt;e&gt; τ" in text
    frame = pd.read_csv(page.parent / "csv" / "retrieval.csv")
    assert SPECIAL in set(frame["objective"])
    compile_latex(page.parent / "latex")


@pytest.mark.usefixtures("blank_pictures")
def test_a_run_alone_is_evaluated_and_reported_without_comparing(run: Path, tmp_path: Path) -> None:
    labels: list[str] = []
    page = report(
        [run],
        tmp_path / "out",
        ReportOptions(title="Mine & <only>"),
        config=CONFIG,
        progress=lambda label, *_: labels.append(label),
    )
    assert (run / "evaluation" / "manifest.json").is_file() and labels[-1] == "reading" and len(set(labels)) > 1
    text = page.read_text(encoding="utf-8")
    assert "<h1>Mine &amp; &lt;only&gt;</h1>" in text
    assert "1 run, 1 objective" in text and "1 runs" not in text
    assert "Fewer samples, better recall?" not in text and "Could it be chance" not in text
    names = {path.stem for path in (page.parent / "csv").iterdir()}
    assert {"retrieval", "runs", "cocos_softmax"} <= names and not names & {"comparison", "count_recall_numbers"}
    compile_latex(page.parent / "latex")


@pytest.mark.usefixtures("blank_pictures")
def test_an_evaluated_run_is_not_evaluated_again(run: Path, tmp_path: Path) -> None:
    examine(Run(run), CONFIG)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    report([run], tmp_path / "out", ReportOptions(resamples=99))
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("blank_pictures")
def test_a_failed_run_is_shown_as_a_gap(study: Path, tmp_path: Path) -> None:
    failed = run_folders(study)[-1]
    (failed / "status.json").write_text('{"status": "failed", "reason": "no memory <left>"}', encoding="utf-8")
    page = report([study], tmp_path / "out", ReportOptions(resamples=99))
    text = page.read_text(encoding="utf-8")
    assert "3 runs of 4" in text and "no memory &lt;left&gt;" in text
    assert "seed 1 of scenes, VSE++, Triplet missing: n = 1." in text
    assert "n = 1 to 2 runs" in text
    gaps = pd.read_csv(page.parent / "csv" / "gaps.csv")
    assert gaps.iloc[0].tolist() == [failed.name, "failed", "no memory <left>"]


@pytest.mark.usefixtures("blank_pictures")
def test_a_metric_that_is_nan_is_a_dash_and_no_part_of_a_mean(study: Path, tmp_path: Path) -> None:
    def remove(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(mean=rows["mean"].mask(rows["statistic"].isin(["rsum", "C_neg", "W_pos"])))

    for folder in run_folders(study)[:2]:  # both seeds of NT-Xent
        rewrite(folder, remove)
    page = report([study], tmp_path / "out", ReportOptions(resamples=99))
    table = pd.read_csv(page.parent / "csv" / "retrieval.csv").set_index("objective")
    assert math.isnan(table.loc["NT-Xent", "rsum"]) and table.loc["Triplet", "rsum"] > 0
    visible = without_data(page)
    assert not re.search(r"\bnan\b", visible, re.IGNORECASE)
    assert "Triplet on scenes reaches rsum" in visible and "rsum is not defined for NT-Xent on scenes" in visible


def without_data(page: Path) -> str:
    """Return the page without scripts and data URLs."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"<script.*?</script>|base64,[^\"]*", "", text, flags=re.DOTALL)


@pytest.mark.usefixtures("blank_pictures")
def test_a_study_of_nothing_but_nan_still_has_a_page(study: Path, tmp_path: Path) -> None:
    for folder in run_folders(study):
        rewrite(folder, lambda rows: rows.assign(mean=math.nan, std=math.nan))
    page = report([study], tmp_path / "out", ReportOptions(resamples=99))
    visible = without_data(page)
    assert not re.search(r"\bnan\b", visible, re.IGNORECASE)


def test_runs_counted_at_two_thresholds_are_refused_before_anything_is_written(study: Path, tmp_path: Path) -> None:
    rewrite(run_folders(study)[0], lambda rows: rows.assign(eps=rows["eps"].mask(rows["eps"].notna(), 0.5)))
    with pytest.raises(InputError, match=r"eps.*0\.01.*0\.5"):
        report([study], tmp_path / "out", ReportOptions(resamples=99))
    assert not (tmp_path / "out").exists()


def test_runs_on_other_data_under_one_name_are_refused(study: Path, tmp_path: Path) -> None:
    rewrite(run_folders(study)[0], lambda rows: rows.assign(data_fingerprint="another"))
    with pytest.raises(InputError, match=r"data_fingerprint of scenes must be one; got .*another"):
        report([study], tmp_path / "out", ReportOptions(resamples=99))
    assert not (tmp_path / "out").exists()


def test_systems_with_other_queries_are_not_compared(study: Path, tmp_path: Path) -> None:
    def rename(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(query=rows["query"] + "x", image=rows["image"] + "x")

    rewrite(run_folders(study)[0], rename, "retrieval")
    with pytest.raises(InputError, match="must have the same queries"):
        report([study], tmp_path / "out", ReportOptions(resamples=99))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("below", ["file", "file/deeper/out", "/proc/lossscope/out"])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tiny_run: Path, tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")

    def work(_label: str, _done: int, _total: int) -> None:
        raise AssertionError("nothing may be done")

    with pytest.raises(InputError, match=r"must be a (writable )?folder.* Choose another --out"):
        report([tiny_run], tmp_path / below, progress=work)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    assert not (tiny_run / "evaluation").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="must be new, empty, or an earlier report; it holds other files"):
        require_page_folder(tmp_path)
    (tmp_path / "index.json").write_text("{}", encoding="utf-8")
    require_page_folder(tmp_path)
    require_page_folder(tmp_path / "new" / "deep")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", ["gone", "."])
def test_a_folder_that_is_neither_study_nor_run_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"must be the folder of a study or of a run"):
        report([tmp_path / path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_code_that_a_run_names_is_not_run_unless_trusted(run: Path, tmp_path: Path) -> None:
    """A foreign run folder may name a Python file; a report must not import it."""
    examine(Run(run), CONFIG)
    (tmp_path / "loss.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    config = run / "config.toml"
    spec = json.dumps(f"{tmp_path / 'loss.py'}:Loss")
    text = re.sub(r"(?m)^objective = .*$", lambda _: f"objective = {spec}", config.read_text())
    config.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="trust-code"):
        report([run], tmp_path / "out", ReportOptions(resamples=99))
    assert not (tmp_path / "ran").exists() and not (tmp_path / "out").exists()


def test_tables_of_a_study_without_a_paper_are_those_of_recall(tiny_study: Path) -> None:
    (table,) = paper_tables(read_runs([tiny_study]), resamples=99)
    assert table.name == "retrieval" and [row[2].text for row in table.rows] == ["NT-Xent", "Triplet"]


def test_chapters_draw_from_tests_and_weight_fields(tiny_study: Path) -> None:
    results = read_runs([tiny_study])
    data = gather(results, diagrams(results), resamples=99)
    assert set(data.diagrams.fields["objective"]) == {"NT-Xent", "Triplet"} and data.tests is not None
    assert data.diagrams.goal_fields.empty and data.diagrams.goal_curves.empty
    assert set(data.comparisons["statistic"]) == {"rsum", "R@1", "R@5", "R@10"}
    assert set(data.comparisons["resamples"]) == {99}


def test_a_study_may_add_weight_fields_and_the_figures_of_goal(tiny_study: Path) -> None:
    added = diagrams(read_runs([tiny_study]), [ReportConfig(("unified", "ntxent:tau=0.5"), ("goal",))])
    assert list(added.fields["objective"].unique()) == ["NT-Xent", "Triplet", "unified", "ntxent:tau=0.5"]
    assert added.goal_fields["objective"].nunique() == 3 and added.goal_curves["label"].nunique() == 5


def test_an_objective_whose_weights_depend_on_the_batch_has_no_weight_field(tiny_study: Path) -> None:
    config = ReportConfig(("goal:pair=sig-ms", "goal:pair=sig"))
    objectives = list(diagrams(read_runs([tiny_study]), [config]).fields["objective"].unique())
    assert objectives == ["NT-Xent", "Triplet", "goal:pair=sig"]
