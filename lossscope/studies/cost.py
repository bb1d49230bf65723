"""What would a study cost? Time a few steps of each kind of run, and multiply by the number of steps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from lossscope.training.components import Components, resolve
from lossscope.training.loop import train

from .study import RunStatus, Study
from .study_file import StudyRun
from .worker import data_of, prepare

STEPS = 6


@dataclass(frozen=True)
class Cost:
    """The cost of a system: the runs that differ in their seed alone."""

    data: str
    encoder: str
    objective_label: str
    runs: int  # that remain
    steps: int  # of a run
    seconds: float | None  # of a run, in a slot of the launcher; None: it could not be timed
    measured: bool  # from finished runs of the system; else from a few steps of the same model and batch size
    megabytes: float  # of the checkpoints of a run
    reason: str = ""  # why it could not be timed; its steps are those of the stated sizes


def estimate(study: Study, device: str = "cpu", progress: Progress | None = None) -> list[Cost]:
    """Return the remaining cost of each system; make the features that it needs.

    Where the data or files of a model are not on this machine, the steps are those of the sizes that the study states.
    Raises the error of the training for another run that cannot be trained.
    """
    systems: dict[tuple[str, str, str], list[RunStatus]] = {}
    for status in study.statuses():
        if status.run.members:  # it trains nothing
            continue
        systems.setdefault(status.run.system, []).append(status)
    timings: dict[object, _Timing | _Stated] = {}
    start = _start_seconds()
    costs = []
    for number, statuses in enumerate(systems.values()):
        if progress:
            progress("timing", number, len(systems))
        run = statuses[0].run
        left = [listed for listed in statuses if listed.status not in ("done", "failed")]
        durations = [listed.seconds for listed in statuses if listed.seconds is not None]
        if durations or not left:
            seconds = sum(durations) / max(len(durations), 1)
            costs.append(Cost(*run.system, len(left), 0, seconds, bool(durations), 0.0))
            continue
        components = resolve(replace(run.recipe, data=data_of(run, study.path)))
        kind = (run.data, run.encoder, run.recipe.batch_size, components.sampling.mode)
        if kind not in timings:
            timings[kind] = _time_or_count(study, run, components, device, progress)
        timing = timings[kind]
        if isinstance(timing, _Stated):
            costs.append(Cost(*run.system, len(left), timing.of(run), None, False, 0.0, timing.reason))
        else:
            steps, seconds, size = timing.of(run)
            costs.append(Cost(*run.system, len(left), steps, seconds + start, False, size))
    return costs


def _time_or_count(
    study: Study, run: StudyRun, components: Components, device: str, progress: Progress | None
) -> _Timing | _Stated:
    """Time a few steps; without data or files, count those of an epoch of the sizes that the study states."""
    try:
        if run.features is not None:
            prepare(study, device, progress)
        return _time(components, device)
    except InputError as error:
        if run.sizes is None:
            raise
        captions = np.repeat(np.arange(run.sizes.train), run.sizes.captions)
        return _Stated(components.sampling.count(captions), str(error))


@dataclass(frozen=True)
class _Stated:
    """The steps of an epoch, from stated sizes."""

    steps: int
    reason: str  # why nothing was timed

    def of(self, run: StudyRun) -> int:
        """Return the steps of a run."""
        return run.recipe.epochs * (run.recipe.steps or self.steps)


@dataclass(frozen=True)
class _Timing:
    """Times of a model on a data set, with batches of the same size."""

    step: float  # seconds
    validation: float  # seconds, with what comes around it
    images: tuple[int, int, int]  # of the splits train, val and test
    steps: int  # of an epoch
    size: int  # bytes of a checkpoint

    def of(self, run: StudyRun) -> tuple[int, float, float]:
        """Return steps, seconds and megabytes of a run. Evaluating takes as long as encoding in validation."""
        epochs = run.recipe.epochs
        train_images, val_images, test_images = self.images
        passes = epochs + 1 + (train_images + test_images) / max(val_images, 1)
        steps = epochs * (run.recipe.steps or self.steps)
        return steps, steps * self.step + passes * self.validation, (epochs + 3) * self.size / 1e6


def _time(components: Components, device: str) -> _Timing:
    short = replace(components.recipe, epochs=1, steps=STEPS, warmup=0, loss_ramp_epoch=0, schedule="step")
    splits = [components.dataset.split(name) for name in ("train", "val", "test")]
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        run = train(short, Path(folder) / "run", device)
        whole = time.monotonic() - begun
        seconds, size = _epoch_seconds(run), run.best.stat().st_size
    steps = components.sampling.count(splits[0].relations)
    train_images, val_images, test_images = (len(split.images) for split in splits)
    images = (train_images, val_images, test_images)
    return _Timing(seconds / STEPS, (whole - seconds) / 2, images, steps, size)


def _start_seconds() -> float:
    """Return the seconds that a new process needs for its imports."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", "import lossscope.studies.worker"], check=True)
    return time.monotonic() - begun


def _epoch_seconds(run: Run) -> float:
    return next(float(event["seconds"]) for event in run.events() if event["event"] == "epoch")
