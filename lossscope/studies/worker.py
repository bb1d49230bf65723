"""One cell of a study, in a process of its own: features if it needs them, training, examination, and how it ended."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lossscope.core.distributed import process_group
from lossscope.datasets.conversion.feature_extraction import Extraction
from lossscope.errors import InputError, Interrupted
from lossscope.io.run_folder import Run
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.recipe import Recipe

from .examine import examine
from .study import Study, cell_of, run_lock, write_status
from .study_file import StudyRun

Progress = Callable[[str, int, int], None]
PARENT = "LOSSSCOPE_PARENT"  # environment: the process that started this one, and with which it ends


def work(study: Path, key: str, device: str = "cpu", progress: Progress | None = None) -> None:
    """Do what is left of a cell and write down how it ended. Of many processes each must call this.

    Raises what training raises; Interrupted leaves the cell as it is, to be gone on with.
    """
    with_parent()
    folder, here = study / "cells" / key, process_group()
    cell, asked = cell_of(folder)
    with run_lock(folder) if here.main else nullcontext():
        here.barrier()  # none begins before the first has the lock, and what an earlier worker left is whole
        begun, before = time.monotonic(), _spent(Run(folder / "run"))
        try:
            recipe = replace(cell.recipe, data=data_of(cell, study))
            run = _trained(recipe, folder / "run", device, progress)
            # what was trained is what the study's own file names, plug-ins included
            out = examine(run, asked, device, progress, cell.recipe.data, trust_code=True, read=recipe.data)
        except (Interrupted, KeyboardInterrupt):
            raise
        except Exception as error:
            if here.main:
                write_status(folder, "failed", reason=_reason(error))
            raise
        if here.main:
            rows = pd.read_parquet(out / "rows.parquet")
            rsum = float(rows.loc[rows["statistic"] == "rsum", "mean"].iloc[0])
            seconds = round(before + time.monotonic() - begun, 1)
            write_status(folder, "done", asked, rsum=rsum, seconds=seconds)


def prepare(study: Study, device: str = "cpu", progress: Progress | None = None) -> None:
    """Make the features that cells are trained on, each once. What is there is kept."""
    wanted = {(cell.recipe.data, cell.features) for cell in study.grid.cells if cell.features is not None}
    for data, features in sorted(wanted):
        assert features is not None
        out = _features(study.path, data, features)
        Extraction(data, build("datasets", data), build("features", features), out, device=device).run(progress)


def data_of(cell: StudyRun, study: Path) -> str:
    """The spec that is trained on: the entry's own, or the features made of it."""
    if cell.features is None:
        return cell.recipe.data
    return f'precomp:root="{_features(study, cell.recipe.data, cell.features).resolve()}"'


def with_parent(every: float = 2.0) -> None:
    """End as by SIGTERM when the process named in LOSSSCOPE_PARENT is no more, however it went."""
    parent = os.environ.get(PARENT)
    if parent is None or not parent.isdecimal():
        return

    def watch() -> None:
        while _alive(int(parent)):
            time.sleep(every)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _alive(process: int) -> bool:
    """Whether there is such a process; one that is over and not yet waited for is none."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        return not (state.is_file() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z")
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True


def _trained(recipe: Recipe, folder: Path, device: str, progress: Progress | None) -> Run:
    run = Run(folder, writes=process_group().main)
    if not run.config.is_file():
        return train(recipe, folder, device, progress=progress)
    if run.last.is_file() and run.best.is_file() and Checkpoint.load(run.last).epoch == recipe.epochs:
        return run
    return resume(folder, device=device, progress=progress)


def _spent(run: Run) -> float:
    """Seconds of the epochs that earlier processes trained."""
    return sum(float(event.get("seconds", 0.0)) for event in run.events())


def _features(study: Path, data: str, features: str) -> Path:
    name = re.sub(r"[^a-z0-9.]+", "-", f"{data} {features}".lower()).strip("-")
    return study / "features" / name


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
