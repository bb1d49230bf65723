"""Start commands as processes, wait for a moment, finish them, and see all their processes end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import wait_until

from .jobs import Job, command

_LONGEST = 180  # seconds that any command may take
_INSTANT = 0.2  # a shorter writing, in seconds, makes a moment hard to meet


@dataclass(frozen=True)
class Setting:
    """The folder of a command, and its times and sizes when undisturbed."""

    job: Job
    folder: Path
    seconds: float  # from its first file to its end
    before: float  # from its start to its first file
    bytes_written: int
    largest: int  # bytes of its largest file
    rng: random.Random


@dataclass(frozen=True)
class Outcome:
    """How the struck commands ended."""

    codes: list[int]
    errors: list[str]  # their stderr
    complaints: list[str]  # complaints about it


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command, with a separate cache."""
    variables = {
        "OMP_NUM_THREADS": "1",
        "LOSSSCOPE_CACHE": str(folder / "cache"),
        "LOSSSCOPE_STATE": str(folder / "state"),
    }
    return {**os.environ, **variables}


def start(setting: Setting, prepare: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    """Start the command of a setting; `prepare` is called in its process."""
    arguments = setting.job.again(setting.folder)

    def begin() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # campaigns in the background ignore it
        if prepare is not None:
            prepare()

    return subprocess.Popen(
        command(arguments), cwd=setting.folder, env=environment(setting.folder), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        preexec_fn=begin,
    )  # fmt: skip


def wait(setting: Setting, process: subprocess.Popen[str]) -> None:
    """Wait for a moment of the command: mostly after its first file, unless it writes for an instant only."""
    if setting.rng.random() < (1 / 6 if setting.seconds > _INSTANT else 5 / 6):
        time.sleep(setting.rng.uniform(0, setting.before))
        return
    known = _names(setting.folder)
    wait_until(lambda: process.poll() is not None or _names(setting.folder) != known, _LONGEST, 0.002)
    time.sleep(setting.rng.uniform(0, setting.seconds))


def finish(*processes: subprocess.Popen[str]) -> Outcome:
    """Wait for the end of commands; kill a command that does not end, which is a complaint."""
    codes, errors, complaints = [], [], []
    for process in processes:
        try:
            errors.append(process.communicate(timeout=_LONGEST)[1])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            errors.append(process.communicate()[1])
            complaints.append(f"did not end in {_LONGEST} s")
        codes.append(process.returncode)
    return Outcome(codes, errors, complaints)


def wait_for_orphans(folder: Path) -> None:
    """Wait until no process works in a folder: workers end some seconds after the command that started them."""
    wait_until(lambda: not any(_works_in(path, folder) for path in Path("/proc").glob("[0-9]*/cwd")), _LONGEST)


def _works_in(link: Path, folder: Path) -> bool:
    try:
        return Path(os.readlink(link)) == folder
    except OSError:  # it has just ended
        return False


def _names(folder: Path) -> set[str]:
    return {path.as_posix() for path in (folder / "out").rglob("*")}
