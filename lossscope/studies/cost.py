"""What would a study cost? Time a few steps of each kind of run, and multiply by the number of steps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.core.types import Progress
from lossscope.io.run_folder import Run
from lossscope.training.components import Components, resolve
from lossscope.training.loop import train

from .study import RunStatus, Study
from .study_file import StudyRun
from .worker import data_of

STEPS = 6


@dataclass(frozen=True)
class Cost:
    """The cost of a system: the runs that differ in their seed alone."""

    data: str
    encoder: str
    objective_label: str
    runs: int  # that remain
    steps: int  # of a run
    seconds: float  # of a run, in a slot of the launcher
    measured: bool  # from finished runs of the system; else from a few steps of the same model and batch size
    megabytes: float  # of the checkpoints of a run


def estimate(study: Study, device: str = "cpu", progress: Progress | None = None) -> list[Cost]:
    """Return the remaining cost of each system. The features must exist (`prepare`).

    Raises the error of the training for a run that cannot be trained.
    """
    systems: dict[tuple[str, str, str], list[RunStatus]] = {}
    for status in study.statuses():
        if status.run.members:  # it trains nothing
            continue
        systems.setdefault(status.run.system, []).append(status)
    timings: dict[object, _Timing] = {}
    start = _start_seconds()
    costs = []
    for number, statuses in enumerate(systems.values()):
        if progress:
            progress("timing", number, len(systems))
        run = statuses[0].run
        left = [listed for listed in statuses if listed.status not in ("done", "failed")]
        durations = [listed.seconds for listed in statuses if listed.seconds is not None]
        if durations or not left:
            steps, seconds, size = 0, sum(durations) / max(len(durations), 1), 0.0
        else:
            components = resolve(replace(run.recipe, data=data_of(run, study.path)))
            kind = (run.data, run.encoder, run.recipe.batch_size, components.sampling.mode)
            if kind not in timings:
                timings[kind] = _time(components, device)
            steps, seconds, size = timings[kind].of(run)
            seconds += start
        costs.append(Cost(*run.system, len(left), steps, seconds, bool(durations), size))
    return costs


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
