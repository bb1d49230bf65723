"""A study in a folder: which of its cells are done, under way, failed and why, and how the rest is run."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import filelock

from lossscope.core.interrupts import stop_on_signals
from lossscope.errors import InputError, Interrupted
from lossscope.io.files import write_text
from lossscope.io.json_files import read_json
from lossscope.training.recipe import Recipe

from .launchers.base import Job, Launcher
from .study_file import ExamineConfig, StudyGrid, StudyRun

SCHEMA = "lossscope.study/1"
Status = Literal["done", "failed", "running", "waiting"]
Tell = Callable[[str], None]
Progress = Callable[[str, int, int], None]
_PAUSE = 0.3  # seconds between looks at what runs


@dataclass(frozen=True)
class RunStatus:
    """Where a cell is. reason: why it failed. seconds: that it took, None until it is done. rsum: of the test split."""

    cell: StudyRun
    status: Status
    reason: str = ""
    seconds: float | None = None
    rsum: float | None = None


@dataclass(frozen=True)
class Study:
    """`study.json` (every cell's choices) and `cells/KEY/`: cell.json, run/, state.json, log.txt, lock."""

    path: Path
    grid: StudyGrid

    @classmethod
    def begun(cls, path: Path, grid: StudyGrid) -> Study:
        """A new study, or one to go on with; the file may have gained cells, and lost some, which are kept.

        Raises InputError when the folder holds something else, or a cell that was begun with other choices.
        """
        study = cls(path, grid)
        if path.exists() and (not path.is_dir() or (any(path.iterdir()) and not (path / "study.json").is_file())):
            raise InputError(f"{path} must be new, empty, or a study; it is something else. Choose another --out")
        for cell in grid.cells:
            file, told = study.folder(cell) / "cell.json", _cell_document(cell, grid.examination)
            if file.is_file() and _choices(read_json(file)) != _choices(told):
                other = [k for k, v in told["recipe"].items() if read_json(file)["recipe"].get(k) != v]
                raise InputError(
                    f"cell {cell.key} of {path} must go on with the choices it began with; got another "
                    f"{', '.join(other) or 'features'}. Choose another --out, or give the entry another name"
                )
        write_text(path / "study.json", json.dumps(_document(grid), indent=1, ensure_ascii=False) + "\n")
        for cell in grid.cells:
            text = json.dumps(_cell_document(cell, grid.examination), indent=1, ensure_ascii=False)
            write_text(study.folder(cell) / "cell.json", text + "\n")
        return study

    @classmethod
    def opened(cls, path: Path | str) -> Study:
        """The study of a folder. Raises InputError when it holds none."""
        file = Path(path) / "study.json"
        if not file.is_file():
            raise InputError(
                f"{path} must be the folder of a study; it has no study.json. `lossscope study run` makes one"
            )
        found = read_json(file)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise InputError(f"{file} must have the schema {SCHEMA}; it has another, of another version")
        examination = _examination(found["examine"])
        cells = tuple(_cell(one) for one in found["cells"])
        return cls(Path(path), StudyGrid(found["name"], found["about"], found["paper"], cells, examination))

    def folder(self, cell: StudyRun) -> Path:
        """Where the cell lives."""
        return self.path / "cells" / cell.key

    def state(self, cell: StudyRun) -> RunStatus:
        """Done or failed as its worker wrote down; running while a worker holds its lock."""
        folder = self.folder(cell)
        file = folder / "state.json"
        found: dict[str, Any] = read_json(file) if file.is_file() else {"status": "waiting"}
        if found["status"] == "done" and found.get("examine") != _plain(self.grid.examination):
            found = {"status": "waiting"}  # trained, but other things were asked of it
        if found["status"] == "waiting" and is_locked(folder):
            return RunStatus(cell, "running")
        return RunStatus(cell, found["status"], found.get("reason", ""), found.get("seconds"), found.get("rsum"))

    def states(self) -> list[RunStatus]:
        """Of every cell, in order."""
        return [self.state(cell) for cell in self.grid.cells]

    def run(
        self,
        launcher: Launcher,
        device: str = "cpu",
        retry: bool = False,
        tell: Tell | None = None,
        progress: Progress | None = None,
    ) -> list[RunStatus]:
        """Run what is neither done nor failed (`retry`: what failed too), seed after seed; the states at the end.

        A cell that fails does not stop the others. Raises Interrupted when asked to stop: cells under way keep what
        they have, and the same call goes on.
        """
        with self._driven():
            return self._run(launcher, device, retry, tell or (lambda _line: None), progress)

    def _run(
        self, launcher: Launcher, device: str, retry: bool, say: Tell, progress: Progress | None
    ) -> list[RunStatus]:
        over = {"done"} if retry else {"done", "failed"}
        todo = [state.cell for state in self.states() if state.status not in over]
        for cell in todo:
            if retry:
                (self.folder(cell) / "state.json").unlink(missing_ok=True)
        waiting = sorted(todo, key=lambda cell: cell.seed)
        jobs: dict[str, tuple[StudyRun, Job]] = {}
        total, finished = len(self.grid.cells), len(self.grid.cells) - len(todo)
        with stop_on_signals() as asked:
            while (waiting or jobs) and not asked:
                while waiting and len(jobs) < launcher.at_once:
                    cell = waiting.pop(0)
                    arguments = ["study", "cell", str(self.path.resolve()), cell.key, "--device", device]
                    jobs[cell.key] = cell, launcher.start(arguments, self.folder(cell) / "log.txt")
                for cell, job, code in list(_ended(jobs)):
                    del jobs[cell.key]
                    finished += 1
                    say(f"{finished}/{total} {_told(self._settled(cell, code, job.last()))}")
                if progress:
                    progress("cells", finished, total)
                time.sleep(_PAUSE if jobs else 0)
            if asked:
                _stopped([job for _, job in jobs.values()])
                raise Interrupted(f"stopped with {finished} of {total} cells over; the same command goes on")
        return self.states()

    def _settled(self, cell: StudyRun, code: int, last: str) -> RunStatus:
        """What the worker wrote down; of one that died before it could, that it died, and its last line."""
        state = self.state(cell)
        if state.status in ("waiting", "running"):
            cause = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            write_status(self.folder(cell), "failed", reason=f"{cause}: {last or 'it said nothing'}")
            state = self.state(cell)
        return state

    @contextlib.contextmanager
    def _driven(self) -> Iterator[None]:
        """One `study run` at a time. Raises InputError when there is another."""
        try:
            with filelock.FileLock(self.path / "lock", timeout=0):
                yield
        except filelock.Timeout:
            told = f"{self.path} must be run by one command at a time; another is at it"
            raise InputError(f"{told}. Wait for it, or look with `lossscope study status`") from None


def write_status(folder: Path, status: Status, asked: ExamineConfig | None = None, **more: Any) -> None:
    """Write down how a cell ended. asked: what was asked of it, when it is done."""
    if asked is not None:
        more["examine"] = _plain(asked)
    write_text(folder / "state.json", json.dumps({"status": status, **more}, indent=1) + "\n")


def cell_of(folder: Path) -> tuple[StudyRun, ExamineConfig]:
    """What cell.json says. Raises InputError when there is none."""
    file = folder / "cell.json"
    if not file.is_file():
        raise InputError(f"{folder} must be the folder of a cell; it has no cell.json")
    found = read_json(file)
    return _cell(found), _examination(found["examine"])


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the cell's lock, waiting for whoever has it; it is let go of when the process ends, however it ends."""
    with filelock.FileLock(folder / "lock"):
        yield


def is_locked(folder: Path) -> bool:
    """Whether somebody holds the cell's lock."""
    if not (folder / "lock").exists():
        return False
    try:
        with filelock.FileLock(folder / "lock", timeout=0):
            return False
    except filelock.Timeout:
        return True
    except PermissionError:  # somebody else's study: whether it runs can not be asked
        return False


def _ended(jobs: dict[str, tuple[StudyRun, Job]]) -> Iterator[tuple[StudyRun, Job, int]]:
    for cell, job in jobs.values():
        code = job.poll()
        if code is not None:
            yield cell, job, code


def _stopped(jobs: list[Job]) -> None:
    for job in jobs:
        job.stop()
    while any(job.poll() is None for job in jobs):
        time.sleep(_PAUSE)


def _told(state: RunStatus) -> str:
    if state.status == "done":
        return f"{state.cell.key}: rsum {state.rsum:.1f}, {state.seconds:.0f} s"
    return f"{state.cell.key}: {state.status}, {state.reason}"


def _document(grid: StudyGrid) -> dict[str, Any]:
    cells = [_cell_document(cell) for cell in grid.cells]
    top = {"schema": SCHEMA, "name": grid.name, "about": grid.about, "paper": grid.paper}
    return {**top, "examine": _plain(grid.examination), "cells": cells}


def _cell_document(cell: StudyRun, examination: ExamineConfig | None = None) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(asdict(cell)))
    return told if examination is None else {**told, "examine": _plain(examination)}


def _plain(asked: ExamineConfig) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(asdict(asked)))
    return found


def _choices(document: dict[str, Any]) -> tuple[Any, Any]:
    return {**asdict(Recipe()), **document["recipe"]}, document["features"]


def _cell(found: dict[str, Any]) -> StudyRun:
    names = {key: found[key] for key in ("key", "data", "encoder", "objective_label", "features", "dataset", "method")}
    return StudyRun(recipe=Recipe(**found["recipe"]), **names)


def _examination(found: dict[str, Any]) -> ExamineConfig:
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
    return ExamineConfig(**known)
