"""What would a study cost? A few steps of each kind of cell, timed, times the steps there are."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.io.run_folder import Run
from lossscope.registry import build
from lossscope.training.loop import train

from .study import RunStatus, Study
from .study_file import StudyRun
from .worker import data_of

STEPS = 6
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Cost:
    """Of one kind of cell, what cells differing in their seed share. cells: left to run. steps: of one cell.

    seconds: of one cell on one of the launcher's places. measured: from finished cells of its kind, else from a few
    steps of a cell that trains the same model on batches of the same size. megabytes: of its checkpoints.
    """

    data: str
    encoder: str
    objective_label: str
    cells: int
    steps: int
    seconds: float
    measured: bool
    megabytes: float


def estimate(study: Study, device: str = "cpu", progress: Progress | None = None) -> list[Cost]:
    """The cost of what is left, per kind of cell. Features must be there (`prepare`).

    Raises what training raises for a cell that can not be trained.
    """
    groups: dict[tuple[str, str, str], list[RunStatus]] = {}
    for state in study.states():
        groups.setdefault(state.cell.group, []).append(state)
    timed: dict[object, _Timed] = {}
    start = _start()
    found = []
    for place, states in enumerate(groups.values()):
        if progress:
            progress("timing", place, len(groups))
        cell, left = states[0].cell, [state for state in states if state.status not in ("done", "failed")]
        known = [state.seconds for state in states if state.seconds is not None]
        if known or not left:
            steps, seconds, size = 0, sum(known) / max(len(known), 1), 0.0
        else:
            kind = (cell.data, cell.encoder, cell.recipe.batch_size, cell.recipe.batches().mode)
            if kind not in timed:
                timed[kind] = _timed(cell, study.path, device)
            steps, seconds, size = timed[kind].of(cell)
            seconds += start
        found.append(Cost(*cell.group, len(left), steps, seconds, bool(known), size))
    return found


@dataclass(frozen=True)
class _Timed:
    """Seconds of a step, of a validation with what comes around it; images of the splits; steps of an epoch; bytes."""

    step: float
    validation: float
    images: tuple[int, int, int]
    steps: int
    size: int

    def of(self, cell: StudyRun) -> tuple[int, float, float]:
        """Steps, seconds and megabytes of a cell. Examining takes as long as looking at its images in validation."""
        epochs = cell.recipe.epochs
        train_images, val_images, test_images = self.images
        looks = epochs + 1 + (train_images + test_images) / max(val_images, 1)
        steps = epochs * cell.recipe.steps_of(self.steps)
        return steps, steps * self.step + looks * self.validation, (epochs + 3) * self.size / 1e6


def _timed(cell: StudyRun, study: Path, device: str) -> _Timed:
    data = data_of(cell, study)
    short = replace(cell.recipe, data=data, epochs=1, steps=STEPS, warmup=0, ramp=0, schedule="step")
    dataset = build("datasets", data)
    splits = [dataset.split(name) for name in ("train", "val", "test")]
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        run = train(short, Path(folder) / "run", device)
        whole = time.monotonic() - begun
        seconds, size = _epoch(run), run.best.stat().st_size
    steps = cell.recipe.batches().count(splits[0].caption_image)
    images = tuple(len(split.images) for split in splits)
    return _Timed(seconds / STEPS, (whole - seconds) / 2, images, steps, size)  # type: ignore[arg-type]


def _start() -> float:
    """Seconds until a new process has imported what it needs."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import lossscope.studies.worker"], check=True)
    return time.monotonic() - begun


def _epoch(run: Run) -> float:
    return next(float(event["seconds"]) for event in run.events() if event["event"] == "epoch")
