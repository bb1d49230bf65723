"""Does every launcher start a real run, and report how it ended?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError, SpecError
from lossscope.registry import build, names
from lossscope.studies.launchers.base import Launcher
from tests.tiny import STUDY_OF_ONE_RUN, begin_study
from tests.waiting import wait_until


def test_names_of_the_launchers() -> None:
    assert names("launchers") == ["local", "slurm", "torchrun"]
    with pytest.raises(SpecError, match="launcher must be one of local, slurm, torchrun"):
        build("launchers", "kubernetes")


@pytest.mark.thorough  # tests/crash has studies of real processes
@pytest.mark.parametrize(
    "spec", ["local:jobs=1", "torchrun:processes=2", "slurm:cluster=local,gpus=0,cpus=1,minutes=5"]
)
def test_a_run_is_trained_and_examined(tmp_path: Path, spec: str) -> None:
    if spec.startswith("slurm"):
        pytest.importorskip("submitit")
    study, launcher = begin_study(tmp_path, STUDY_OF_ONE_RUN), build("launchers", spec)
    assert isinstance(launcher.at_once, int)
    (status,) = study.run(launcher)
    log = study.folder(status.run) / "log.txt"
    assert status.status == "done", log.read_text(encoding="utf-8") if log.is_file() else status.reason
    assert status.rsum is not None and 0 <= status.rsum <= 600


def test_a_job_that_is_stopped_ends(tmp_path: Path) -> None:
    launcher: Launcher = build("launchers", "local:jobs=1")
    study = begin_study(tmp_path, STUDY_OF_ONE_RUN)
    job = launcher.start(["study", "worker", str(study.path), study.grid.runs[0].key], tmp_path / "log.txt")
    job.stop()
    assert wait_until(lambda: job.poll() is not None, 60) and job.poll() != 0
    assert study.statuses()[0].status == "waiting"


def test_number_of_runs_at_once() -> None:
    assert build("launchers", "local:jobs=3").at_once == 3
    assert 1 <= build("launchers", "local").at_once <= 4
    assert build("launchers", "torchrun:processes=4").at_once == 1
    assert build("launchers", "slurm:jobs=7").at_once == 7


@pytest.mark.parametrize("spec", ["local:jobs=-1", "torchrun:processes=0", "slurm:minutes=0", "slurm:gpus=-1"])
def test_numbers_out_of_range_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="must be at least"):
        build("launchers", spec)
