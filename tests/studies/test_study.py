"""A study from its first cell to its last: what is done stays done, what fails is told, what was killed goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.report.results import read_results
from lossscope.studies.cost import estimate
from lossscope.studies.launchers.base import last_line
from lossscope.studies.study import Study, is_locked, run_lock
from lossscope.studies.study_file import read_study_file
from lossscope.studies.worker import data_of, prepare, work

TINY = """
name = "tiny"
seeds = [0, 1]
[recipe]
epochs = 1
batch_size = 16
lr = 0.01
[[data]]
name = "scenes"
spec = "scenes:train=24,val=8,test=10,size=16"
[[encoders]]
name = "VSE++"
spec = "vsepp:width=4,dim=8,words=8"
[[objectives]]
name = "NT-Xent"
spec = "ntxent"
[[objectives]]
name = "Triplet"
spec = "triplet"
[examine]
probes = ["cocos:eps=0.01,curve=true", "similarity"]
what_if = "ntxent:tau=0.05..0.2/3"
"""
BROKEN = TINY.replace('name = "Triplet"\nspec = "triplet"', 'name = "Off"\nspec = "aoq"')  # aoq without its lists


@dataclass
class Done:
    """A job that is over."""

    code: int
    log: Path

    def poll(self) -> int | None:
        return self.code

    def stop(self) -> None:
        raise AssertionError("a job that is over is not stopped")

    def last(self) -> str:
        return last_line(self.log.read_text(encoding="utf-8")) if self.log.is_file() else ""


@dataclass
class Here:
    """Runs cells within this process; after `most` of them it dies without a word, as a killed worker does."""

    most: int = 100
    started: list[str] = field(default_factory=list)
    at_once: int = 1

    def start(self, arguments: Sequence[str], log: Path) -> Done:
        self.started.append(arguments[3])
        if len(self.started) > self.most:
            log.write_text("no memory left\n", encoding="utf-8")
            return Done(-9, log)
        try:
            work(Path(arguments[2]), arguments[3])
        except InputError:
            return Done(1, log)
        return Done(0, log)


def begun(tmp_path: Path, text: str = TINY) -> Study:
    file = tmp_path / "tiny.toml"
    file.write_text(text, encoding="utf-8")
    return Study.begun(tmp_path / "study", read_study_file(file))


def test_every_cell_is_run_once_seed_after_seed(tmp_path: Path) -> None:
    study, launcher, told = begun(tmp_path), Here(), []
    states = study.run(launcher, tell=told.append)
    assert [state.status for state in states] == ["done"] * 4
    assert [key[-5:] for key in launcher.started] == ["seed0", "seed0", "seed1", "seed1"]
    assert told[-1].startswith("4/4 scenes--vse--") and "rsum" in told[-1]
    again = Here()
    study.run(again)
    assert again.started == []
    results = read_results([study.path])
    assert results.rows["run"].nunique() == 4 and results.gaps.empty
    assert set(results.rows["objective_label"]) == {"NT-Xent", "Triplet"} and set(results.rows["seed"]) == {0, 1}
    rsum = results.rows[results.rows["statistic"] == "rsum"].set_index("run")["mean"]
    assert {state.cell.key: state.rsum for state in states} == rsum.to_dict()
    assert set(results.queries["direction"]) == {"i2t", "t2i"}
    assert len(results.queries) == 4 * (10 + 50)
    assert set(results.what_if["objective"]) == {f"ntxent:tau={tau}" for tau in ("0.05", "0.125", "0.2")}
    assert set(results.singles["probe"]) == {"similarity", "tangent"}
    truth = results.rows[results.rows["statistic"] == "true_negatives"]
    assert len(truth) == 4 and truth["mean"].nunique() == 1 and 0 <= truth["mean"].iloc[0] < 100


@pytest.mark.slow
def test_a_study_may_gain_seeds_and_be_asked_more_but_not_change_what_was_begun(tmp_path: Path) -> None:
    begun(tmp_path).run(Here())
    more, launcher = begun(tmp_path, TINY.replace("[0, 1]", "[0, 1, 2]")), Here()
    more.run(launcher)
    assert [key[-5:] for key in launcher.started] == ["seed2", "seed2"]
    asked = begun(tmp_path, TINY.replace('"similarity"]', '"similarity", "hubness"]'))
    assert {state.status for state in asked.states()} == {"waiting"}
    before = {path: path.stat().st_mtime_ns for path in asked.path.glob("cells/*/run/best.pt")}
    asked.run(Here())
    assert {path: path.stat().st_mtime_ns for path in before} == before  # asked again, not trained again
    assert "hub_max_count" in set(read_results([asked.path]).rows["statistic"])
    with pytest.raises(InputError, match="must go on with the choices it began with; got another lr"):
        begun(tmp_path, TINY.replace("lr = 0.01", "lr = 0.02"))


@pytest.mark.slow
def test_a_cell_that_fails_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    study = begun(tmp_path, BROKEN)
    states = study.run(Here())
    assert [state.status for state in states] == ["done", "done", "failed", "failed"]
    assert "offline" in states[2].reason
    again = Here()
    study.run(again)
    assert again.started == []  # what failed is left, unless it is asked for
    study.run(again, retry=True)
    assert len(again.started) == 2
    results = read_results([study.path])
    assert list(results.gaps["status"]) == ["failed", "failed"] and "offline" in results.gaps["reason"].iloc[0]


@pytest.mark.slow
def test_a_worker_that_dies_silently_is_a_failed_cell(tmp_path: Path) -> None:
    states = begun(tmp_path).run(Here(most=3))
    assert [state.status for state in states].count("done") == 3
    assert [state.reason for state in states if state.status == "failed"] == ["killed by signal 9: no memory left"]


@pytest.mark.slow
def test_a_cell_is_run_by_one_worker_at_a_time(tmp_path: Path) -> None:
    study = begun(tmp_path)
    folder = study.folder(study.grid.cells[0])
    assert not is_locked(folder)
    with run_lock(folder):
        code = "from pathlib import Path; from lossscope.studies.study import is_locked; "
        code += f"print(is_locked(Path({str(folder)!r})))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "True"
    assert study.state(study.grid.cells[0]).status == "waiting"


def test_features_are_made_once_and_trained_on(tmp_path: Path) -> None:
    regions = 'name = "VSRN"\nspec = "vsrn:dim=8,words=8,blocks=1"\nfeatures = "hog-grid:rows=2,columns=2,cell=16"'
    study = begun(tmp_path, TINY.replace('name = "VSE++"\nspec = "vsepp:width=4,dim=8,words=8"', regions))
    prepare(study)
    cell = study.grid.cells[0]
    assert data_of(cell, study.path).startswith('precomp:root="') and cell.recipe.data.startswith("scenes:")
    work(study.path, cell.key)
    assert study.state(cell).status == "done"
    rows = read_results([study.path]).rows
    assert "true_negatives" in set(rows["statistic"])  # truth is that of the pictures


@pytest.mark.slow
def test_a_study_that_was_moved_is_asked_again_where_it_is_now(tmp_path: Path) -> None:
    regions = 'name = "VSRN"\nspec = "vsrn:dim=8,words=8,blocks=1"\nfeatures = "hog-grid:rows=2,columns=2,cell=16"'
    text = TINY.replace('name = "VSE++"\nspec = "vsepp:width=4,dim=8,words=8"', regions).replace("[0, 1]", "[0]")
    study = begun(tmp_path, text)
    prepare(study)
    study.run(Here())
    study.path.rename(tmp_path / "elsewhere")
    file = tmp_path / "tiny.toml"
    file.write_text(text.replace('"similarity"]', '"similarity", "hubness"]'), encoding="utf-8")
    states = Study.begun(tmp_path / "elsewhere", read_study_file(file)).run(Here())
    assert [state.status for state in states] == ["done"] * 2
    assert "hub_max_count" in set(read_results([tmp_path / "elsewhere"]).rows["statistic"])


@pytest.mark.slow
def test_the_cost_is_measured_and_finished_cells_tell_their_own(tmp_path: Path) -> None:
    study = begun(tmp_path)
    costs = estimate(study)
    assert [(cost.objective_label, cost.cells, cost.measured) for cost in costs] == [
        ("NT-Xent", 2, False),
        ("Triplet", 2, False),
    ]
    assert all(cost.steps == 8 and 0 < cost.seconds < 60 and cost.megabytes > 0 for cost in costs)
    study.run(Here(most=1))
    told = estimate(study)[0]
    assert told.measured and told.seconds == study.states()[0].seconds


def test_a_folder_that_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be the folder of a study; it has no study\.json"):
        Study.opened(tmp_path)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="must be new, empty, or a study"):
        begun(tmp_path)
    (tmp_path / "study" / "notes.txt").unlink()
    path = begun(tmp_path).path
    with pytest.raises(InputError, match="at least one run must be done; got scenes--vse--nt-xent--seed0: waiting"):
        read_results([path])


@pytest.mark.slow
def test_a_study_killed_in_the_middle_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    text = TINY.replace("epochs = 1", "epochs = 3").replace("train=24", "train=120")
    whole = begun(tmp_path, text)
    whole.run(Here())
    command = [sys.executable, "-m", "lossscope_cli", "study", "run", str(tmp_path / "tiny.toml")]
    command += ["--out", str(tmp_path / "killed"), "--launcher", "local:jobs=2", "--device", "cpu"]
    first = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("killed/cells/*/state.json")):
        assert time.monotonic() < deadline and first.poll() is None, first.communicate()
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    half = Study.opened(tmp_path / "killed")
    assert any(state.status != "done" for state in half.states())
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours, theirs = (read_results([path]).rows for path in (half.path, whole.path))
    keys = ["run", "direction", "probe", "convention", "statistic", "split"]
    ours, theirs = (frame.sort_values(keys, ignore_index=True) for frame in (ours, theirs))
    pd.testing.assert_frame_equal(ours, theirs)
