"""A study in a folder: the status of its runs, and the launch of the rest."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lossscope.core.interrupts import stop_on_signals
from lossscope.core.types import Progress
from lossscope.errors import InputError, Interrupted
from lossscope.io.decode import decode
from lossscope.io.evaluation_folder import evaluation_state
from lossscope.io.files import write_text
from lossscope.io.folder_lock import has_content, is_locked, lock_folder, remove_stale_lock
from lossscope.io.json_files import read_json
from lossscope.io.remembered_trust import remember_trust, remembered_trust
from lossscope.io.scores import RSUM, score_of
from lossscope.io.trusted_code import plugin_files, require_trusted, trust
from lossscope.training.recipe import Recipe

from .launchers.base import Job, Launcher
from .study_file import ExamineConfig, ReportConfig, StudyGrid, StudyRun

SCHEMA = "lossscope.study/2"
Status = Literal["done", "failed", "running", "waiting"]
OnLine = Callable[[str], None]  # called with a line about a run that ended
_PAUSE = 0.3  # seconds between looks at the jobs


@dataclass(frozen=True)
class RunStatus:
    """The status of a run of a study."""

    run: StudyRun
    status: Status
    reason: str = ""  # why it failed, or why a trained run is waiting
    seconds: float | None = None  # of training and evaluation; None until both are done
    rsum: float | None = None  # of the test split; for sides other than images and captions, the score named `score`
    score: str = RSUM.name


@dataclass(frozen=True)
class Study:
    """A folder with `study.json` (all choices of the runs) and `runs/KEY/`: run.json, run/, status.json, log.txt."""

    path: Path
    grid: StudyGrid

    @classmethod
    def begin(cls, path: Path, grid: StudyGrid) -> Study:
        """Begin or continue a study. The file may have gained or lost runs; the folder keeps the lost ones.

        Raises InputError if the folder holds something else, or a run that began with other choices.
        """
        study = cls(path, grid)
        if has_content(path) and not (path / "study.json").is_file():
            raise InputError(f"{path} must be new, empty, or a study; it is something else. Choose another --out")
        with lock_folder(path):
            study._write()
        return study

    def _write(self) -> None:
        """Write study.json and all run.json files, in a locked folder."""
        study, path, grid = self, self.path, self.grid
        if (path / "study.json").is_file():
            _ = Study.open(path)  # refuses a study of another version
        for run in grid.runs:
            file = study.folder(run) / "run.json"
            before = read_run(file.parent)[0] if file.is_file() else run
            changed = [name for name, value in asdict(run.recipe).items() if value != asdict(before.recipe)[name]]
            changed += [name for name in ("features", "begins_from") if getattr(before, name) != getattr(run, name)]
            if changed:
                raise InputError(
                    f"run {run.key} of {path} must keep the choices it began with; got another "
                    f"{', '.join(changed)}. Choose another --out, or give the entry another name"
                )
        write_text(path / "study.json", _text({"schema": SCHEMA, **_plain(grid)}))
        for run in grid.runs:
            document = {"run": _plain(run), "examine": _plain(run.examined(grid.examine))}
            write_text(study.folder(run) / "run.json", _text(document))

    @classmethod
    def open(cls, path: Path | str) -> Study:
        """Open the study of a folder. Raises InputError when it holds none."""
        file = Path(path) / "study.json"
        if not file.is_file():
            raise InputError(
                f"{path} must be the folder of a study; it has no study.json. `lossscope study run` makes one"
            )
        document = read_json(file)
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise InputError(
                f"{file} must have the schema {SCHEMA}; another version of lossscope wrote it. Run the study into a "
                "new folder"
            )
        return cls(Path(path), decode(StudyGrid, {k: v for k, v in document.items() if k != "schema"}, str(file)))

    def folder(self, run: StudyRun) -> Path:
        """Return the folder of a run."""
        return self.path / "runs" / run.key

    def status(self, run: StudyRun) -> RunStatus:
        """Return the status of a run: done or failed as its worker wrote; running while a worker holds its lock."""
        file = self.folder(run) / "status.json"
        stored = decode(_StatusFile, read_json(file), str(file)) if file.is_file() else _StatusFile("waiting")
        if stored.status == "done" and stored.examine != run.examined(self.grid.examine):
            stored = _StatusFile("waiting", reason="trained, but not evaluated as the study's [examine] now says")
        if stored.status == "done" and (missing := evaluation_state(self.folder(run) / "run")) is not None:
            stored = _StatusFile("waiting", reason=missing)
        if stored.status == "waiting" and is_locked(self.folder(run)):
            return RunStatus(run, "running")
        for key in run.needs if stored.status == "waiting" else ():
            before = self.status(self.grid.run(key))
            if before.status == "failed" or (before.status == "waiting" and before.reason):
                how = "averages" if run.members else "begins from"
                return RunStatus(run, "waiting", f"{how} {key}, {before.status}: {before.reason}")
        return RunStatus(run, stored.status, stored.reason, stored.seconds, stored.rsum, stored.score)

    def statuses(self) -> list[RunStatus]:
        """Return the status of each run, in order."""
        return [self.status(run) for run in self.grid.runs]

    @contextlib.contextmanager
    def trusted(self) -> Iterator[str | None]:
        """Trust the Python files of this study inside the block, and remember those that are trusted now.

        Yields the reason if they cannot be remembered, else None. Raises InputError if the study names another file.
        """
        with trust(more=remembered_trust(self.path)):
            require_trusted(self.grid.specs, self.path / "study.json")
            yield remember_trust(self.path, self.grid.specs)

    def run(
        self,
        launcher: Launcher,
        device: str = "cpu",
        retry: bool = False,
        on_line: OnLine | None = None,
        progress: Progress | None = None,
    ) -> list[RunStatus]:
        """Run all that is neither done nor failed, seed after seed; return the final statuses.

        A run that fails does not stop the others, except those that need it, which wait.

        Args:
            launcher: starts the workers.
            device: of the workers.
            retry: run failed runs, too.
            on_line: called with a line about each run that ended.
            progress: called with (label, done, of).

        Raises:
            InputError: another command runs the study, or it names a Python file that is not trusted.
            Interrupted: after SIGINT or SIGTERM; current runs save their state, and the same call resumes them.
        """
        require_trusted(self.grid.specs, self.path / "study.json")
        with lock_folder(self.path):
            return self._run(launcher, device, retry, on_line or (lambda _line: None), progress)

    def _run(
        self, launcher: Launcher, device: str, retry: bool, on_line: OnLine, progress: Progress | None
    ) -> list[RunStatus]:
        over = {"done"} if retry else {"done", "failed"}
        statuses = self.statuses()
        todo = [status.run for status in statuses if status.status not in over]
        for status in statuses:
            if status.status in over:  # no worker will lock its folder again
                remove_stale_lock(self.folder(status.run))
        done = {status.run.key for status in statuses if status.status == "done"}
        waiting = sorted(todo, key=lambda run: run.seed)
        jobs: dict[str, tuple[StudyRun, Job]] = {}
        total, finished = len(self.grid.runs), len(self.grid.runs) - len(todo)
        with stop_on_signals() as stop:
            while (waiting or jobs) and not stop:
                while len(jobs) < launcher.at_once and (run := _next(waiting, done)) is not None:
                    waiting.remove(run)
                    (self.folder(run) / "status.json").unlink(missing_ok=True)
                    arguments = ["study", "worker", str(self.path.resolve()), run.key, "--device", device]
                    arguments += self._trusted_files(run)
                    jobs[run.key] = run, launcher.start(arguments, self.folder(run) / "log.txt")
                for run, job, code in list(_finished_jobs(jobs)):
                    del jobs[run.key]
                    finished += 1
                    final = self._final_status(run, code, job.last())
                    done |= {run.key} if final.status == "done" else set()
                    on_line(f"{finished}/{total} {_line(final)}")
                if not jobs and _next(waiting, done) is None:
                    break
                if progress:
                    progress("runs", finished, total)
                time.sleep(_PAUSE if jobs else 0)
            if stop:
                _stop([job for _, job in jobs.values()])
                raise Interrupted(f"stopped with {finished} of {total} runs over; the same command resumes")
        return self.statuses()

    def _trusted_files(self, run: StudyRun) -> list[str]:
        """Return the options that name the Python files trusted here, which a worker may import."""
        files = plugin_files((*run.specs, *self.grid.examine.specs))
        return [word for file in files for word in ("--trusted-file", str(file.resolve()))]

    def _final_status(self, run: StudyRun, code: int, last_line: str) -> RunStatus:
        """Return the worker's status; if it died before it wrote any, the cause and its last line.

        A worker that a signal ended can be resumed, and is waiting; a worker that ended by itself has failed.
        """
        if not (self.folder(run) / "status.json").is_file():
            signal = -code if code < 0 else code - 128  # 128 + signal is the code of shells
            cause = f"ended by signal {signal}" if signal > 0 else f"exit code {code}"
            status: Literal["waiting", "failed"] = "waiting" if signal > 0 else "failed"
            write_status(self.folder(run), status, reason=f"{cause}: {last_line or 'it said nothing'}")
        return self.status(run)


def write_status(
    folder: Path,
    status: Literal["done", "failed", "waiting"],
    reason: str = "",
    examine: ExamineConfig | None = None,
    rsum: float | None = None,
    seconds: float | None = None,
    score: str = RSUM.name,
) -> None:
    """Write how a run ended.

    Args:
        folder: of the run in the study.
        status: done, failed, or waiting to be resumed.
        reason: why it failed or waits.
        examine: the config of its evaluation, if it is done.
        rsum: of the test split, or the score in its place.
        seconds: of training and evaluation.
        score: name of that score.
    """
    plain = _plain(_StatusFile(status, reason, examine, rsum, seconds, score))
    if score == RSUM.name:
        del plain["score"]
    write_text(folder / "status.json", _text(plain))


def read_run(folder: Path) -> tuple[StudyRun, ExamineConfig]:
    """Read run.json. Raises InputError if it is missing."""
    file = folder / "run.json"
    if not file.is_file():
        raise InputError(f"{folder} must be the folder of a study's run; it has no run.json")
    document = decode(_RunFile, read_json(file), str(file))
    return document.run, document.examine


@dataclass(frozen=True)
class _StatusFile:
    """The content of status.json."""

    status: Literal["done", "failed", "waiting"]
    reason: str = ""
    examine: ExamineConfig | None = None
    rsum: float | None = None
    seconds: float | None = None
    score: str = RSUM.name  # name of the score in `rsum`


@dataclass(frozen=True)
class _RunFile:
    """The content of run.json."""

    run: StudyRun
    examine: ExamineConfig


def _finished_jobs(jobs: dict[str, tuple[StudyRun, Job]]) -> Iterator[tuple[StudyRun, Job, int]]:
    for run, job in jobs.values():
        code = job.poll()
        if code is not None:
            yield run, job, code


def _next(waiting: Sequence[StudyRun], done: Set[str]) -> StudyRun | None:
    """Return the first run that need not wait for others; None where there is none."""
    return next((run for run in waiting if set(run.needs) <= done), None)


def _stop(jobs: list[Job]) -> None:
    for job in jobs:
        job.stop()
    while any(job.poll() is None for job in jobs):
        time.sleep(_PAUSE)


def _line(status: RunStatus) -> str:
    if status.status == "done":
        return f"{status.run.key}: {_score_text(status)}, {status.seconds:.0f} s"
    return f"{status.run.key}: {status.status}, {status.reason}"


def _score_text(status: RunStatus) -> str:
    """Return `rsum 301.2`."""
    score = score_of([status.score])
    return f"{score.name} {score.number(status.rsum or 0.0)}"


def _plain(value: StudyGrid | StudyRun | ExamineConfig | ReportConfig | Recipe | _StatusFile) -> dict[str, Any]:
    plain: dict[str, Any] = asdict(value)
    return plain


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
