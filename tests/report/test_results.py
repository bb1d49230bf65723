"""Are the results of many runs those of their files, and are damaged, missing or repeated runs refused or gaps?"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.evaluation_folder import frames_of, read_frame, write_evaluation
from lossscope.io.frames import SUMMARY
from lossscope.io.json_files import read_json
from lossscope.io.run_folder import Run
from lossscope.report.results import FRAMES, LABELS, Results, RunRecord, read_results
from lossscope.studies.examine import examine
from lossscope.studies.report import read_runs
from lossscope.studies.study_file import ExamineConfig

CONFIG = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())


@pytest.fixture
def study(tiny_study: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may write to."""
    return Path(shutil.copytree(tiny_study, tmp_path / "study"))


@pytest.fixture(scope="module")
def run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a single evaluated run folder. Do not write to it."""
    folder = Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("plain") / "alone"))
    examine(Run(folder), CONFIG)
    return folder


def record(run: Path, **changes: Any) -> RunRecord:
    labels = {"data": "scenes", "encoder": "VSE++", "objective_label": "NT-Xent", "spec": "ntxent:tau=0.1"}
    return replace(RunRecord(run=run.name, path=run, seed=0, **labels), **changes)


def run_folders(study: Path) -> list[Path]:
    return sorted((study / "runs").iterdir())


def study_json(study: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((study / "study.json").read_text(encoding="utf-8"))
    return document


def test_every_row_has_the_labels_of_its_run(tiny_study: Path) -> None:
    results = read_runs([tiny_study])
    keys = {run["key"] for run in study_json(tiny_study)["runs"]}
    for kind in (*FRAMES, "epochs"):
        frame: pd.DataFrame = getattr(results, kind)
        assert {*LABELS, "seed"} <= set(frame.columns), kind
        assert set(frame["run"]) == keys, kind
        assert frame[["run", "objective_label", "spec", "seed"]].drop_duplicates().shape[0] == len(keys), kind
        assert set(frame["data"]) == {"scenes"} and set(frame["encoder"]) == {"VSE++"}, kind
    assert set(SUMMARY) <= set(results.rows.columns)
    assert (results.rows["source"] == results.rows["run"]).all()
    assert set(results.rows.loc[results.rows["objective_label"] == "Triplet", "spec"]) == {"triplet:margin=0.2"}
    assert (results.name, results.paper, len(results.gaps)) == ("tiny", None, 0)


def test_numbers_are_those_of_the_files(tiny_study: Path) -> None:
    results = read_runs([tiny_study])
    for folder in run_folders(tiny_study):
        written = pd.read_parquet(folder / "run" / "evaluation" / "rows.parquet")
        rows = results.rows[results.rows["run"] == folder.name]
        assert rows["mean"].tolist() == pytest.approx(written["mean"].tolist(), nan_ok=True)
        assert rows["statistic"].tolist() == written["statistic"].tolist()


def test_choices_are_those_of_the_run_files(tiny_study: Path) -> None:
    recipes = read_runs([tiny_study]).recipes
    for folder in run_folders(tiny_study):
        written = json.loads((folder / "run.json").read_text(encoding="utf-8"))["run"]["recipe"]
        assert json.loads(json.dumps(recipes[folder.name])) == written


def test_a_run_folder_is_named_by_its_folder_and_its_specs(run: Path) -> None:
    results = read_runs([run])
    (row,) = results.runs.to_dict("records")
    assert (row["run"], row["status"], row["seed"]) == ("alone", "done", 0)
    assert (row["objective_label"], row["spec"]) == ("ntxent", "ntxent:tau=0.1") and row["dataset"] is None
    assert row["data"].startswith("scenes:train=60") and row["encoder"].startswith("vsepp:")
    assert set(results.retrieval["run"]) == {"alone"} and results.curves.empty and results.per_query.empty
    assert set(LABELS) <= set(results.curves.columns) and set(SUMMARY) <= set(results.what_if.columns)
    assert results.name == "1 run" and len(results.epochs)


def frame_of(run: Path, name: str) -> pd.DataFrame:
    frame = read_frame(run, name)
    assert frame is not None
    return frame


def rewrite(run: Path, **changes: pd.DataFrame | None) -> None:
    """Write frames of an evaluation anew, as if computed so; None removes a frame."""
    frames = {name: read_frame(run, name) for name in frames_of(run)} | changes
    manifest = read_json(run / "evaluation" / "manifest.json")
    write_evaluation(run, {name: frame for name, frame in frames.items() if frame is not None}, manifest)


def test_frames_without_rows_stay_frames_with_labels(run: Path, tmp_path: Path) -> None:
    """pandas refuses to concatenate nothing; files without any row must give an empty frame."""
    folders = [Path(shutil.copytree(run, tmp_path / name)) for name in ("a", "b")]
    for folder in folders:
        rewrite(folder, curves=frame_of(folder, "retrieval")[:0])
    records = [record(folder, seed=seed) for seed, folder in enumerate(folders)]
    curves = read_results(records).curves
    assert curves.empty and list(curves.columns[: len(LABELS)]) == list(LABELS) and "rank" in curves
    rewrite(folders[1], curves=None)
    assert read_results(records).curves.empty


def test_one_empty_frame_leaves_the_rows_of_the_others(run: Path, tmp_path: Path) -> None:
    folders = [Path(shutil.copytree(run, tmp_path / name)) for name in ("a", "b")]
    rewrite(folders[0], retrieval=frame_of(folders[0], "retrieval")[:0])
    results = read_results([record(folder, seed=seed) for seed, folder in enumerate(folders)])
    assert set(results.retrieval["run"]) == {"b"}
    assert len(results.retrieval) == len(frame_of(folders[1], "retrieval"))


def test_runs_of_different_sides_are_not_mixed(run: Path, tmp_path: Path) -> None:
    """The report left out scores of runs whose sides are not images and captions."""
    folders = [Path(shutil.copytree(run, tmp_path / name)) for name in ("a", "b")]
    rewrite(folders[1], rows=frame_of(folders[1], "rows").assign(sides="query/document"))
    records = [record(folder, seed=seed) for seed, folder in enumerate(folders)]
    says = "runs of a report must be of the same sides; got image/caption of a and query/document of b"
    with pytest.raises(InputError, match=says):
        read_results(records)
    assert len(read_results(records[1:]).rows)
    assert len(read_results([records[0], replace(records[1], status="failed")]).rows)


def test_studies_and_run_folders_can_be_read_together(tiny_study: Path, run: Path) -> None:
    results = read_runs([tiny_study, run])
    assert results.rows["run"].nunique() == 5 and results.name == "tiny"


def test_choices_that_differ_are_part_of_the_label(run: Path, tmp_path: Path) -> None:
    """Runs with other learning rates are not seeds of one system; their mean would mean nothing."""
    for name, rate in (("slow", "0.002"), ("fast", "0.02")):
        folder = Path(shutil.copytree(run, tmp_path / name))
        text = (folder / "config.toml").read_text(encoding="utf-8")
        (folder / "config.toml").write_text(text.replace("lr = 0.002", f"lr = {rate}"), encoding="utf-8")
    results = read_runs([tmp_path / "slow", tmp_path / "fast"])
    labels = {"ntxent, lr 0.002", "ntxent, lr 0.02"}
    for frame in (results.runs, results.rows, results.epochs):
        assert set(frame["objective_label"]) == labels
    assert set(results.runs["spec"]) == {"ntxent:tau=0.1"}


def test_runs_of_other_seeds_have_one_label(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "other"))
    text = (folder / "config.toml").read_text(encoding="utf-8")
    (folder / "config.toml").write_text(text.replace("seed = 0", "seed = 7"), encoding="utf-8")
    results = read_runs([run, folder])
    assert set(results.runs["objective_label"]) == {"ntxent"} and set(results.rows["seed"]) == {0, 7}


def test_two_runs_of_one_seed_are_refused(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    with pytest.raises(InputError, match=r"must have different seeds; alone and copy both have 0\. Leave one out"):
        read_runs([run, copy])
    with pytest.raises(InputError, match=r"runs of scenes, VSE\+\+, NT-Xent must have different seeds; .* both have 0"):
        read_results([record(run), record(copy)])


def test_runs_evaluated_with_another_configuration_are_gaps(study: Path) -> None:
    """A study half counted at another eps would have numbers that cannot be compared."""
    folder = run_folders(study)[0]
    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    status["examine"]["probes"] = ["cocos:eps=0.1"]
    (folder / "status.json").write_text(json.dumps(status), encoding="utf-8")
    (gap,) = read_runs([study]).gaps.to_dict("records")
    assert (gap["run"], gap["status"]) == (folder.name, "waiting") and "not evaluated as" in gap["reason"]


def test_runs_that_are_not_done_are_gaps_with_their_reason(study: Path) -> None:
    failed, waiting, *_ = run_folders(study)
    (failed / "status.json").write_text('{"status": "failed", "reason": "no memory <left>"}', encoding="utf-8")
    (waiting / "status.json").unlink()
    results = read_runs([study])
    gaps = results.gaps.set_index("run")
    assert gaps.loc[failed.name, ["status", "reason"]].tolist() == ["failed", "no memory <left>"]
    assert gaps.loc[waiting.name, "status"] == "waiting"
    done = {folder.name for folder in run_folders(study)} - {failed.name, waiting.name}
    assert set(results.rows["run"]) == done
    assert len(results.runs) == 4


def test_a_study_without_a_finished_run_says_why(study: Path) -> None:
    for folder in run_folders(study):
        (folder / "status.json").write_text('{"status": "failed", "reason": "no memory"}', encoding="utf-8")
    with pytest.raises(
        InputError, match=r"at least one run must be finished; got .*seed0: failed no memory.*study status"
    ):
        read_runs([study])
    with pytest.raises(InputError, match="at least one run must be finished; got no run"):
        read_runs([])


def test_two_runs_of_one_name_are_refused(tiny_study: Path, run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(run, tmp_path / "alone"))
    config = other / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("seed = 0", "seed = 7"), encoding="utf-8")
    with pytest.raises(InputError, match=r"names of runs must differ; got alone twice\. Rename a folder"):
        read_runs([run, other])
    with pytest.raises(InputError, match=r"names of runs must differ; got scenes--vse--nt-xent--seed0, .* twice"):
        read_runs([tiny_study, tiny_study])


@pytest.mark.parametrize("kind", ["rows", "retrieval", "curves"])
def test_a_damaged_file_is_named(study: Path, kind: str) -> None:
    file = run_folders(study)[1] / "run" / "evaluation" / f"{kind}.parquet"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(InputError, match=rf"{kind}\.parquet must match its SHA-256; .* Remove its folder"):
        read_runs([study])


def test_a_trained_run_without_its_evaluation_is_a_gap(study: Path) -> None:
    """The status file says done, but the numbers are missing: evaluate the run again."""
    folder = run_folders(study)[0]
    shutil.rmtree(folder / "run" / "evaluation")
    (gap,) = read_runs([study]).gaps.to_dict("records")
    assert (gap["run"], gap["status"], gap["reason"]) == (
        folder.name,
        "waiting",
        "trained, but its evaluation is missing",
    )


def test_a_run_that_was_not_evaluated_is_refused(tiny_run: Path) -> None:
    message = r"must be a run with an evaluation; it has none\. `lossscope report` evaluates it"
    with pytest.raises(InputError, match=message):
        read_runs([tiny_run])
    with pytest.raises(InputError, match=message):
        read_results([record(tiny_run)])


def test_a_folder_that_is_neither_study_nor_run_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(
            InputError, match=r"must be the folder of a study or of a run; it has neither study\.json nor"
        ):
            read_runs([path])


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": "lossscope.study/9", "runs": []}'])
def test_a_study_that_is_damaged_or_of_another_version_is_refused(study: Path, text: str) -> None:
    (study / "study.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"study\.json must"):
        read_runs([study])


@pytest.mark.parametrize("text", ["data = ", "unknown = 1\n", ""])
def test_a_run_whose_choices_are_damaged_is_refused(run: Path, tmp_path: Path, text: str) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    (folder / "config.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.toml"):
        read_runs([folder])


def test_a_damaged_status_is_named(study: Path) -> None:
    (run_folders(study)[0] / "status.json").write_text('{"status": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"status\.json must be whole JSON"):
        read_runs([study])


def test_gaps_are_runs_that_are_not_done() -> None:
    empty = pd.DataFrame()
    runs = pd.DataFrame({"run": ["a", "b", "c"], "status": ["done", "failed", "running"]})
    results = Results(*[empty] * 7, runs=runs, recipes={}, name="x")
    assert results.gaps["run"].tolist() == ["b", "c"]
