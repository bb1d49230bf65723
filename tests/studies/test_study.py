"""Do done runs of a study stay done, are failures reported, and do killed runs resume?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.errors import InputError, Interrupted
from lossscope.io.files import fingerprint
from lossscope.io.folder_lock import HOLDER, LOCK, is_locked, lock_folder
from lossscope.io.run_folder import Run
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.studies.cost import estimate
from lossscope.studies.launchers.base import last_line
from lossscope.studies.report import read_runs
from lossscope.studies.study import Study
from lossscope.studies.study_file import read_study_file
from lossscope.studies.worker import data_of, prepare, work
from lossscope.training.loop import train
from lossscope.training.recipe_files import read_recipe
from tests.tiny import PROBES, STUDY_OF_ONE_RUN, begin_study, study_text
from tests.waiting import wait_until

TINY = study_text()
LOCKS = (LOCK, HOLDER)
VSEPP = 'name = "VSE++"\nspec = "vsepp:width=4,dim=8,words=8"'
VSRN = 'name = "VSRN"\nspec = "vsrn:dim=8,words=8,blocks=1"\nfeatures = "hog-grid:rows=2,columns=2,cell=16"'


def replace_once(text: str, old: str, new: str) -> str:
    """Return a text with `old` replaced; it must occur once."""
    assert text.count(old) == 1
    return text.replace(old, new)


BROKEN = replace_once(TINY, 'name = "Triplet"\nspec = "triplet"', 'name = "Off"\nspec = "aoq"')  # aoq without its lists


@dataclass
class EndedJob:
    """A job that has ended."""

    code: int
    log: Path

    def poll(self) -> int | None:
        return self.code

    def stop(self) -> None:
        raise AssertionError("a job that has ended is not stopped")

    def last(self) -> str:
        return last_line(self.log.read_text(encoding="utf-8")) if self.log.is_file() else ""


@dataclass
class InProcess:
    """A launcher that runs workers in this process; after `limit` workers the others end silently, as if killed."""

    limit: int = 100
    started: list[str] = field(default_factory=list)  # keys of the runs
    at_once: int = 1

    def start(self, arguments: Sequence[str], log: Path) -> EndedJob:
        self.started.append(arguments[3])
        if len(self.started) > self.limit:
            log.write_text("no memory left\n", encoding="utf-8")
            return EndedJob(-9, log)
        try:
            work(Path(arguments[2]), arguments[3])
        except InputError:
            return EndedJob(1, log)
        return EndedJob(0, log)


def begin(tmp_path: Path, text: str = TINY) -> Study:
    return begin_study(tmp_path, text)


def test_every_run_is_run_once_seed_after_seed(tmp_path: Path) -> None:
    study, launcher, lines = begin(tmp_path), InProcess(), []
    statuses = study.run(launcher, on_line=lines.append)
    assert [status.status for status in statuses] == ["done"] * 4
    assert [key[-5:] for key in launcher.started] == ["seed0", "seed0", "seed1", "seed1"]
    assert lines[-1].startswith("4/4 scenes--vse--") and "rsum" in lines[-1]
    again = InProcess()
    study.run(again)
    assert again.started == []
    results = read_runs([study.path])
    assert results.rows["run"].nunique() == 4 and results.gaps.empty
    assert set(results.rows["objective_label"]) == {"NT-Xent", "Triplet"} and set(results.rows["seed"]) == {0, 1}
    rsum = results.rows[results.rows["statistic"] == "rsum"].set_index("run")["mean"]
    assert {status.run.key: status.rsum for status in statuses} == rsum.to_dict()
    assert set(results.retrieval["direction"]) == {"i2t", "t2i"}
    assert len(results.retrieval) == 4 * (10 + 50)
    assert set(results.what_if["objective"]) == {f"ntxent:tau={tau}" for tau in ("0.05", "0.125", "0.2")}
    assert set(results.per_query["probe"]) == {"similarity", "tangent"}
    truth = results.rows[results.rows["statistic"] == "true_negatives"]
    assert len(truth) == 4 and truth["mean"].nunique() == 1 and 0 <= truth["mean"].iloc[0] < 100


def test_a_study_may_gain_seeds_and_probes_but_not_change_the_choices_of_its_runs(tmp_path: Path) -> None:
    begin(tmp_path, STUDY_OF_ONE_RUN).run(InProcess())
    text = f"seeds = [0, 1]{STUDY_OF_ONE_RUN}"
    more, launcher = begin(tmp_path, text), InProcess()
    more.run(launcher)
    assert [key[-5:] for key in launcher.started] == ["seed1"]
    extended = begin(tmp_path, replace_once(text, '["cocos:eps=0.01"]', '["cocos:eps=0.01", "hubness"]'))
    assert {status.status for status in extended.statuses()} == {"waiting"}
    before = {path: path.stat().st_mtime_ns for path in extended.path.glob("runs/*/run/best.pt")}
    extended.run(InProcess())
    assert before and {path: path.stat().st_mtime_ns for path in before} == before  # evaluated, not trained again
    assert "hub_max_count" in set(read_runs([extended.path]).rows["statistic"])
    with pytest.raises(InputError, match="must keep the choices it began with; got another lr"):
        begin(tmp_path, replace_once(text, "[recipe]", "[recipe]\nlr = 0.02"))


def test_a_run_that_fails_says_why_and_the_others_are_run(tmp_path: Path) -> None:
    study = begin(tmp_path, BROKEN)
    statuses = study.run(InProcess())
    assert [status.status for status in statuses] == ["done", "done", "failed", "failed"]
    assert "offline" in statuses[2].reason
    again = InProcess()
    study.run(again)
    assert again.started == []  # failed runs are run again with retry only
    study.run(again, retry=True)
    assert len(again.started) == 2
    results = read_runs([study.path])
    assert list(results.gaps["status"]) == ["failed", "failed"] and "offline" in results.gaps["reason"].iloc[0]


def test_a_worker_that_is_killed_is_resumed_by_the_same_command(tmp_path: Path) -> None:
    """Its run was called failed, and needed --retry-failed."""
    study = begin(tmp_path, f"seeds = [0, 1]{STUDY_OF_ONE_RUN}")
    statuses = study.run(InProcess(limit=1))
    assert [status.status for status in statuses].count("done") == 1
    assert [status.reason for status in statuses if status.status == "waiting"] == ["ended by signal 9: no memory left"]
    assert [status.status for status in study.run(InProcess())] == ["done"] * 2


def test_a_worker_that_is_killed_between_its_last_file_and_its_end_leaves_no_lock(
    tiny_study: Path, tmp_path: Path
) -> None:
    """`run/.lock` stayed: a complete run is not written again, so that no worker locked it any more."""
    study = Study.open(shutil.copytree(tiny_study, tmp_path / "study"))
    first, second = (study.folder(run) for run in study.grid.runs[:2])
    stale = [folder / name for folder in (first, second, second / "run", second / "run/evaluation") for name in LOCKS]
    for path in stale:
        path.touch()
    (second / "status.json").unlink()
    again = InProcess()
    assert [status.status for status in study.run(again)] == ["done"] * 4
    assert again.started == [second.name]
    assert not [path for path in stale if path.exists()]


def test_a_worker_that_ends_by_itself_without_a_word_has_failed(tmp_path: Path) -> None:
    study = begin(tmp_path)
    for code, status, cause in ((1, "failed", "exit code 1"), (137, "waiting", "ended by signal 9")):
        run = study.grid.runs[0]
        (study.folder(run) / "status.json").unlink(missing_ok=True)
        final = study._final_status(run, code, "")
        assert (final.status, final.reason) == (status, f"{cause}: it said nothing")


def test_a_run_has_one_worker_at_a_time(tmp_path: Path) -> None:
    study = begin(tmp_path)
    folder = study.folder(study.grid.runs[0])
    assert not is_locked(folder)
    with lock_folder(folder):
        code = "from pathlib import Path; from lossscope.io.folder_lock import is_locked; "
        code += f"print(is_locked(Path({str(folder)!r})))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "True"
        assert study.status(study.grid.runs[0]).status == "running"
    assert study.status(study.grid.runs[0]).status == "waiting"


def test_features_are_made_once_and_trained_on(tmp_path: Path) -> None:
    study = begin(tmp_path, replace_once(TINY, VSEPP, VSRN))
    prepare(study)
    run = study.grid.runs[0]
    assert data_of(run, study.path).startswith('precomp:root="') and run.recipe.data.startswith("scenes:")
    work(study.path, run.key)
    assert study.status(run).status == "done"
    rows = read_runs([study.path]).rows
    assert "true_negatives" in set(rows["statistic"])  # the true pairs are those of the pictures


TWO_STEPS = replace_once(
    STUDY_OF_ONE_RUN.replace("epochs = 1", "epochs = 2"),
    "[[objectives]]",
    """[[encoders]]
name = "second step"
spec = "vsepp:width=4,dim=8,words=8,word_init=0.5"
begin_from = "vsepp:width=4,dim=8,words=8"
recipe = { epochs = 3 }
[[objectives]]""",
)


def interrupt_epoch_2(label: str, done: int, _of: int) -> None:
    """Send this process SIGINT in the second epoch of a training."""
    if label.startswith("epoch 2/") and done == 1:
        signal.raise_signal(signal.SIGINT)


def test_a_second_step_begins_from_the_best_checkpoint_of_the_first(tmp_path: Path) -> None:
    study, launcher = begin(tmp_path, TWO_STEPS), InProcess(at_once=2)
    first, second = study.grid.runs
    assert second.begins_from == first.key and first.begins_from is None
    with pytest.raises(InputError, match=f"{first.key} must be done before {second.key}"):
        work(study.path, second.key)
    assert study.status(second).status == "waiting"  # it has not failed
    work(study.path, first.key)
    with pytest.raises(Interrupted):
        work(study.path, second.key, progress=interrupt_epoch_2)
    assert {status.status for status in study.run(launcher)} == {"done"}
    assert launcher.started == [second.key]
    best, run = study.folder(first) / "run" / "best.pt", Run(study.folder(second) / "run")
    recipe = read_recipe(run.config)
    assert recipe == replace(second.recipe, init=str(best.resolve()))
    last = Checkpoint.load(run.last)
    assert last.training["init_fingerprint"] == fingerprint(best)
    again = train(recipe, tmp_path / "again")  # config.toml is all that a training needs, stopped or not
    assert again.metrics.read_bytes() == run.metrics.read_bytes()
    score = Checkpoint.load(best).metrics["rsum"]
    assert pd.read_csv(run.metrics)["rsum"].iloc[0] == pd.read_csv(best.with_name("metrics.csv"))["rsum"].max() == score


def test_a_second_step_is_started_after_its_first(tmp_path: Path) -> None:
    study, launcher = begin(tmp_path, TWO_STEPS), InProcess(at_once=2)
    first, second = study.grid.runs
    second_first = replace(study, grid=replace(study.grid, runs=(second, first)))
    assert {status.status for status in second_first.run(launcher)} == {"done"}
    assert launcher.started == [first.key, second.key]
    recipes = read_runs([study.path]).recipes  # as the report's table of choices states them
    assert [recipes[run.key]["init"] for run in (first, second)] == [None, f"best.pt of {first.encoder}"]


def test_a_second_step_waits_for_a_first_that_failed_and_says_so(tmp_path: Path) -> None:
    study = begin(tmp_path, TWO_STEPS.replace('spec = "ntxent"', 'spec = "aoq"'))  # aoq without its lists
    first, second = study.run(InProcess())
    assert first.status == "failed" and "offline" in first.reason
    assert second.status == "waiting" and second.reason.startswith(f"begins from {first.run.key}, failed: ")
    launcher = InProcess(limit=0)
    study.run(launcher, retry=True)
    assert launcher.started == [first.run.key]


def test_a_study_that_was_moved_is_evaluated_again_in_its_new_place(tmp_path: Path) -> None:
    study = begin(tmp_path, replace_once(study_text(seeds=(0,)), VSEPP, VSRN))
    prepare(study)
    study.run(InProcess())
    study.path.rename(tmp_path / "elsewhere")
    file = tmp_path / "tiny.toml"
    more = study_text(seeds=(0,), probes=(*PROBES, "hubness"))
    file.write_text(replace_once(more, VSEPP, VSRN), encoding="utf-8")
    statuses = Study.begin(tmp_path / "elsewhere", read_study_file(file)).run(InProcess())
    assert [status.status for status in statuses] == ["done"] * 2
    assert "hub_max_count" in set(read_runs([tmp_path / "elsewhere"]).rows["statistic"])


def test_the_cost_is_measured_or_that_of_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = begin(tmp_path)
    costs = estimate(study)
    assert [(cost.objective_label, cost.runs, cost.measured) for cost in costs] == [
        ("NT-Xent", 2, False),
        ("Triplet", 2, False),
    ]
    assert all(cost.steps == 8 and 0 < cost.seconds < 60 and cost.megabytes > 0 for cost in costs)
    study.run(InProcess(limit=1))
    monkeypatch.setattr("lossscope.studies.cost._start_seconds", lambda: 3.0)
    cost = estimate(study)[0]
    assert cost.measured and cost.seconds == study.statuses()[0].seconds


def test_a_folder_that_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be the folder of a study; it has no study\.json"):
        Study.open(tmp_path)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="must be new, empty, or a study"):
        begin(tmp_path)
    (tmp_path / "study" / "notes.txt").unlink()
    path = begin(tmp_path).path
    with pytest.raises(InputError, match="at least one run must be finished; got scenes--vse--nt-xent--seed0: waiting"):
        read_runs([path])


def test_a_study_killed_in_the_middle_is_resumed_to_the_same_numbers(tmp_path: Path) -> None:
    whole = begin(tmp_path, study_text(seeds=(0,), epochs=3, train=48))
    whole.run(InProcess())
    command = [sys.executable, "-m", "lossscope_cli", "study", "run", str(tmp_path / "tiny.toml")]
    command += ["--out", str(tmp_path / "killed"), "--launcher", "local:jobs=1", "--device", "cpu"]
    one_is_done = "killed/runs/*/status.json"
    first = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    wait_until(lambda: any(tmp_path.glob(one_is_done)) or first.poll() is not None, 120)
    assert any(tmp_path.glob(one_is_done)), first.communicate()
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    half = Study.open(tmp_path / "killed")
    assert any(status.status != "done" for status in half.statuses())
    assert {status.status for status in half.run(InProcess())} == {"done"}
    ours, theirs = (read_runs([path]).rows for path in (half.path, whole.path))
    keys = ["run", "direction", "probe", "convention", "statistic", "split"]
    ours, theirs = (frame.sort_values(keys, ignore_index=True) for frame in (ours, theirs))
    pd.testing.assert_frame_equal(ours, theirs)
