"""Do a run of a study in a process: make features if it needs them, train, evaluate, write the status."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from lossscope.core.distributed import is_lost_process, process_group
from lossscope.core.parent_process import end_with_parent
from lossscope.core.types import Progress
from lossscope.datasets.conversion.feature_extraction import Extraction
from lossscope.errors import InputError, Interrupted, WriteError
from lossscope.io.evaluation_folder import read_frame
from lossscope.io.folder_lock import lock_folder, remove_stale_lock
from lossscope.io.folder_names import is_folder_name
from lossscope.io.json_files import shorten
from lossscope.io.run_folder import Run
from lossscope.io.scores import score_of, score_rows
from lossscope.io.trusted_code import require_trusted
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.offline_candidates import mine_candidates
from lossscope.training.recipe import Recipe

from .examine import examine, examine_ensemble
from .study import Study, read_run, write_status
from .study_file import StudyRun


def work(study: Path, key: str, device: str = "cpu", progress: Progress | None = None) -> None:
    """Do the rest of a run and write its status. With many processes, each must call this.

    Raises the errors of training, and InputError for an unknown key or a Python file that is not trusted. After
    Interrupted, a full disk or the loss of another process, the run can be resumed.

    Args:
        study: folder of the study.
        key: of the run.
        device: of the training.
        progress: called with (label, done, of).
    """
    end_with_parent()
    if not is_folder_name(key):
        raise InputError(f"key of a run must be the name of a folder in runs; got {shorten(key)}")
    folder, processes = study / "runs" / key, process_group()
    study_run, config = read_run(folder)
    require_trusted((*study_run.specs, *config.specs), folder / "run.json")
    recipe = replace(study_run.recipe, data=data_of(study_run, study), init=_start_of(study_run, study))
    with lock_folder(folder, wait=True) if processes.main else nullcontext():
        processes.barrier()  # wait until the first process has the lock, and files of an earlier worker are complete
        begun, before = time.monotonic(), _seconds_of_epochs(Run(folder / "run"))
        try:
            run = Run(folder / "run", writes=processes.main)
            if study_run.members:
                if processes.main:
                    examine_ensemble(run, _members(study_run, study), config, device, progress)
            else:
                recipe = _with_candidates(recipe, study_run, folder, device, progress)
                run = _trained_run(recipe, folder / "run", device, progress)
                examine(run, config, device, progress, pictures=study_run.recipe.data, data=recipe.data)
        except (Interrupted, KeyboardInterrupt):
            raise
        except Exception as error:
            if processes.main and not is_lost_process(_reason(error)):
                with suppress(WriteError):
                    write_status(folder, "waiting" if isinstance(error, WriteError) else "failed", _reason(error))
            raise
        if processes.main:
            rows = read_frame(run.path, "rows")
            assert rows is not None
            rsum = float(score_rows(rows)["mean"].iloc[0])
            seconds, score = round(before + time.monotonic() - begun, 1), score_of(rows["statistic"]).name
            write_status(folder, "done", examine=config, rsum=rsum, seconds=seconds, score=score)


def prepare(study: Study, device: str = "cpu", progress: Progress | None = None) -> None:
    """Make the features of the runs, each once; keep those that exist."""
    wanted = {(run.recipe.data, run.features) for run in study.grid.runs if run.features is not None}
    for data, features in sorted(wanted):
        assert features is not None
        out = _features_folder(study.path, data, features)
        Extraction(data, build("datasets", data), build("features", features), out, device=device).run(progress)


def data_of(run: StudyRun, study: Path) -> str:
    """Return the data spec of a training: that of the entry, or the features made of its pictures."""
    if run.features is None:
        return run.recipe.data
    return f'precomp:root="{_features_folder(study, run.recipe.data, run.features).resolve()}"'


def _members(run: StudyRun, study: Path) -> dict[Path, str]:
    """Return the run folders of an ensemble's members, each with the spec of its data."""
    folders = (study / "runs" / key for key in run.members)
    return {folder / "run": data_of(read_run(folder)[0], study) for folder in folders}


def _start_of(run: StudyRun, study: Path) -> str | None:
    """Return the checkpoint that a training begins with: its recipe's, or the best of the run that it begins from.

    Raises InputError if that run is not done.
    """
    if run.begins_from is None:
        return run.recipe.init
    opened = Study.open(study)
    start = opened.grid.run(run.begins_from)
    if opened.status(start).status != "done":
        raise InputError(f"{start.key} must be done before {run.key}, which begins from it; run the whole study")
    return str(Run(opened.folder(start) / "run").best.resolve())


def _with_candidates(recipe: Recipe, run: StudyRun, folder: Path, device: str, progress: Progress | None) -> Recipe:
    """Return the recipe, with candidates that the model it begins from mines, if its objective draws from any.

    They are all of the training split, in `offline` of the run's folder, unless the recipe names others.
    """
    needs = "offline" in build("objectives", recipe.objective).traits.required_info
    if not needs or recipe.offline or run.begins_from is None:
        return recipe
    out, processes = folder / "offline", process_group()
    if processes.main and not Run(folder / "run").config.is_file():
        options = {"device": device, "progress": progress, "cache": False, "data": recipe.data}
        mine_candidates(load(str(recipe.init), split="train", **options), out, progress=progress)
    processes.barrier()
    return replace(recipe, offline=str(out.resolve()))


def _trained_run(recipe: Recipe, folder: Path, device: str, progress: Progress | None) -> Run:
    run = Run(folder, writes=process_group().main)
    if not run.config.is_file():
        return train(recipe, folder, device, observers=Observers(progress=progress))
    if run.last.is_file() and run.best.is_file() and Checkpoint.load(run.last).epoch == recipe.epochs:
        if process_group().main:
            remove_stale_lock(folder)
        return run
    return resume(folder, device=device, observers=Observers(progress=progress))


def _seconds_of_epochs(run: Run) -> float:
    """Return the seconds of the epochs that earlier processes trained."""
    return sum(float(event.get("seconds", 0.0)) for event in run.events())


def _features_folder(study: Path, data: str, features: str) -> Path:
    name = re.sub(r"[^a-z0-9.]+", "-", f"{data} {features}".lower()).strip("-")
    return study / "features" / name


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
