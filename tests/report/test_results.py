"""Is what is read of many runs theirs, and does a folder that is damaged, missing or there twice say so?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY
from lossscope.io.run_folder import Run
from lossscope.report.results import KINDS, WHO, Results, read_results
from lossscope.studies.examine import examine
from lossscope.studies.study_file import ExamineConfig

ASKED = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())


@pytest.fixture
def study(tiny_study: Path, tmp_path: Path) -> Path:
    """A copy that may be written to."""
    return Path(shutil.copytree(tiny_study, tmp_path / "study"))


@pytest.fixture(scope="module")
def plain(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder on its own, examined; not to be written to."""
    run = Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("plain") / "alone"))
    examine(Run(run), ASKED)
    return run


def cells(study: Path) -> list[Path]:
    return sorted((study / "cells").iterdir())


def told(study: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((study / "study.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_every_row_says_whose_it_is(tiny_study: Path) -> None:
    results = read_results([tiny_study])
    keys = {cell["key"] for cell in told(tiny_study)["cells"]}
    for kind in (*KINDS, "epochs"):
        frame: pd.DataFrame = getattr(results, kind)
        assert {*WHO, "seed"} <= set(frame.columns), kind
        assert set(frame["run"]) == keys, kind
        assert frame[["run", "objective_label", "spec", "seed"]].drop_duplicates().shape[0] == len(keys), kind
        assert set(frame["data"]) == {"scenes"} and set(frame["encoder"]) == {"VSE++"}, kind
    assert set(SUMMARY) <= set(results.rows.columns)
    assert (results.rows["source"] == results.rows["run"]).all()
    assert set(results.rows.loc[results.rows["objective_label"] == "Triplet", "spec"]) == {"triplet:margin=0.2"}
    assert (results.name, results.paper, len(results.gaps)) == ("tiny", None, 0)


def test_numbers_are_those_of_the_files(tiny_study: Path) -> None:
    results = read_results([tiny_study])
    for folder in cells(tiny_study):
        kept = pd.read_parquet(folder / "run" / "examined" / "rows.parquet")
        ours = results.rows[results.rows["run"] == folder.name]
        assert ours["mean"].tolist() == pytest.approx(kept["mean"].tolist(), nan_ok=True)
        assert ours["statistic"].tolist() == kept["statistic"].tolist()


def test_a_run_folder_is_called_by_its_folder_and_its_specs(plain: Path) -> None:
    results = read_results([plain])
    (cell,) = results.cells.to_dict("records")
    assert (cell["run"], cell["status"], cell["seed"]) == ("alone", "done", 0)
    assert cell["objective_label"] == cell["spec"] == "ntxent:tau=0.1" and cell["dataset"] is None
    assert cell["data"].startswith("scenes:train=60") and cell["encoder"].startswith("vsepp:")
    assert set(results.queries["run"]) == {"alone"} and results.curves.empty and results.singles.empty
    assert set(WHO) <= set(results.curves.columns) and set(SUMMARY) <= set(results.what_if.columns)
    assert results.name == "1 run" and len(results.epochs)


def test_studies_and_run_folders_stand_together(tiny_study: Path, plain: Path) -> None:
    results = read_results([str(tiny_study), plain])
    assert results.rows["run"].nunique() == 5 and results.name == "tiny"


def test_choices_that_differ_are_part_of_the_name_of_what_was_trained(plain: Path, tmp_path: Path) -> None:
    """Runs with other rates are not seeds of one system; their mean would be of nothing."""
    for name, rate in (("slow", "0.002"), ("fast", "0.02")):
        run = Path(shutil.copytree(plain, tmp_path / name))
        text = (run / "config.toml").read_text(encoding="utf-8")
        (run / "config.toml").write_text(text.replace("lr = 0.002", f"lr = {rate}"), encoding="utf-8")
    results = read_results([tmp_path / "slow", tmp_path / "fast"])
    assert set(results.cells["objective_label"]) == {"ntxent:tau=0.1, lr 0.002", "ntxent:tau=0.1, lr 0.02"}
    assert (
        set(results.rows["objective_label"])
        == set(results.epochs["objective_label"])
        == set(results.cells["objective_label"])
    )
    assert set(results.cells["spec"]) == {"ntxent:tau=0.1"}


def test_runs_of_other_seeds_are_of_one_name(plain: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(plain, tmp_path / "other"))
    text = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(text.replace("seed = 0", "seed = 7"), encoding="utf-8")
    results = read_results([plain, run])
    assert set(results.cells["objective_label"]) == {"ntxent:tau=0.1"} and set(results.rows["seed"]) == {0, 7}


def test_two_runs_of_one_seed_are_no_mean(plain: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(plain, tmp_path / "copy"))
    with pytest.raises(
        InputError, match=r"must have a seed of its own; alone and copy both have 0\. Leave one of them out"
    ):
        read_results([plain, copy])


def test_cells_of_which_other_things_were_asked_since_are_gaps(study: Path) -> None:
    """Half a study counted at another eps would be numbers that can not stand beside the others."""
    folder = cells(study)[0]
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    state["examine"]["probes"] = ["cocos:eps=0.1"]
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (gap,) = read_results([study]).gaps.to_dict("records")
    assert (gap["run"], gap["status"]) == (folder.name, "waiting") and "other things are asked" in gap["reason"]


def test_cells_that_are_not_done_are_gaps_with_their_reason(study: Path) -> None:
    failed, waiting, *_ = cells(study)
    (failed / "state.json").write_text('{"status": "failed", "reason": "no memory <left>"}', encoding="utf-8")
    (waiting / "state.json").unlink()
    results = read_results([study])
    gaps = results.gaps.set_index("run")
    assert gaps.loc[failed.name, ["status", "reason"]].tolist() == ["failed", "no memory <left>"]
    assert gaps.loc[waiting.name, "status"] == "waiting"
    assert set(results.rows["run"]) == {folder.name for folder in cells(study)} - {failed.name, waiting.name}
    assert len(results.cells) == 4


def test_a_study_of_which_nothing_is_done_says_why(study: Path) -> None:
    for folder in cells(study):
        (folder / "state.json").write_text('{"status": "failed", "reason": "no memory"}', encoding="utf-8")
    with pytest.raises(InputError, match=r"at least one run must be done; got .*seed0: failed no memory.*study status"):
        read_results([study])
    with pytest.raises(InputError, match="at least one run must be done; got no run"):
        read_results([])


def test_two_runs_of_one_name_are_refused(tiny_study: Path, plain: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(plain, tmp_path / "alone"))
    with pytest.raises(InputError, match=r"names of their own; got alone twice\. Rename a folder"):
        read_results([plain, other])
    with pytest.raises(InputError, match=r"names of their own; got scenes--vse--nt-xent--seed0, .* twice"):
        read_results([tiny_study, tiny_study])


@pytest.mark.parametrize("kind", ["rows", "queries", "curves"])
def test_a_damaged_file_is_named(study: Path, kind: str) -> None:
    file = cells(study)[1] / "run" / "examined" / f"{kind}.parquet"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(InputError, match=rf"{kind}\.parquet must be a whole file of the run; .* Remove the folder"):
        read_results([study])


def test_a_done_cell_without_its_numbers_is_no_run_of_nothing(study: Path) -> None:
    shutil.rmtree(cells(study)[0] / "run" / "examined")
    with pytest.raises(InputError, match=r"nt-xent--seed0.run must be a run that was examined"):
        read_results([study])


def test_a_run_that_was_not_examined_is_told(tiny_run: Path) -> None:
    with pytest.raises(
        InputError, match=r"must be a run that was examined; it was not\. `lossscope report` does it first"
    ):
        read_results([tiny_run])


def test_a_folder_that_is_neither_is_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(
            InputError, match=r"must be the folder of a study or of a run; it has neither study\.json nor"
        ):
            read_results([path])


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": "lossscope.study/9", "cells": []}'])
def test_a_study_that_is_damaged_or_of_another_version_is_told(study: Path, text: str) -> None:
    (study / "study.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"study\.json must"):
        read_results([study])


@pytest.mark.parametrize("text", ["data = ", "unknown = 1\n", ""])
def test_a_run_whose_choices_are_damaged_is_told(plain: Path, tmp_path: Path, text: str) -> None:
    run = Path(shutil.copytree(plain, tmp_path / "run"))
    (run / "config.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.toml"):
        read_results([run])


def test_a_state_that_is_damaged_is_told(study: Path) -> None:
    (cells(study)[0] / "state.json").write_text('{"status": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"state\.json must be whole JSON"):
        read_results([study])


def test_gaps_are_cells_that_are_not_done() -> None:
    empty = pd.DataFrame()
    cells = pd.DataFrame({"run": ["a", "b", "c"], "status": ["done", "failed", "running"]})
    results = Results(*[empty] * 7, cells, "x")
    assert results.gaps["run"].tolist() == ["b", "c"]
