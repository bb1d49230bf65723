"""The faults: each starts the command, does its harm at a moment, and says how the command took it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

from .processes import Outcome, Setting, finish, start, wait, wait_for_orphans
from .small_disks import small_disk

_CAP_DAC_OVERRIDE, _PR_CAPBSET_DROP = 1, 24  # the right of root to write where nobody may
_EXPECTED = ("must have one writer at a time", "must be new or empty")  # of the second of two writers


def send(number: signal.Signals) -> Callable[[Setting], Outcome]:
    """Return the fault that sends a signal to the command."""

    def strike(setting: Setting) -> Outcome:
        process = start(setting)
        wait(setting, process)
        process.send_signal(number)
        return finish(process)

    return strike


def kill_worker(setting: Setting) -> Outcome:
    """Kill a process that the command started, or the command where it started none."""
    process = start(setting)
    wait(setting, process)
    deadline = time.monotonic() + 5
    while not (workers := _children(process.pid)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    for worker in workers[:1] or [process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    return finish(process)


def fill_disk(setting: Setting) -> Outcome:
    """Let the command write to a disk that is too small, and make room afterwards."""
    with small_disk(setting, setting.rng.uniform(0.02, 0.95)):
        return one_message(finish(start(setting)))


def limit_files(setting: Setting) -> Outcome:
    """Let no file of the command be larger than a limit, as `ulimit -f` does."""
    most = max(int(setting.rng.uniform(0.02, 0.98) * setting.largest), 64)
    return one_message(finish(start(setting, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))))


def forbid(setting: Setting) -> Outcome:
    """Take away the right to write to the folders, then give it back."""
    process = start(setting, drop_override)
    wait(setting, process)
    folders = [setting.folder / "out", *(path for path in (setting.folder / "out").rglob("*") if path.is_dir())]
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            folder.chmod(0o555)
    try:
        return one_message(finish(process))
    finally:
        for folder in folders:
            if folder.is_dir():
                folder.chmod(0o755)


def remove(setting: Setting) -> Outcome:
    """Remove the folder while the command writes it, and again at the end."""
    process, target = start(setting), setting.folder / "out/x"
    wait(setting, process)
    shutil.rmtree(target, ignore_errors=True)
    outcome = one_message(finish(process))
    wait_for_orphans(setting.folder)
    shutil.rmtree(target, ignore_errors=True)
    return outcome


def start_twice(setting: Setting) -> Outcome:
    """Start the command again while it runs: both do the work, or one does and the other says why it did not."""
    first = start(setting)
    wait(setting, first)
    outcome = finish(first, start(setting))
    for code, text in zip(outcome.codes, outcome.errors, strict=True):
        if code and not any(words in text for words in _EXPECTED):
            outcome.complaints.append(f"one of two ended with {code}: {text.strip()[-200:]}")
    if all(outcome.codes):
        outcome.complaints.append("both of two failed")
    return outcome


def one_message(outcome: Outcome) -> Outcome:
    """Complain unless a failed command names, in one line, what it was writing."""
    for code, text in zip(outcome.codes, outcome.errors, strict=True):
        lines = [line for line in text.splitlines() if line.startswith("Error: ")]
        said = text if "Stopped: " in text or "Failed: " in text else "".join(lines)
        if code and ("out" not in said or len(lines) > 1):
            outcome.complaints.append(f"ended with {code} and no single message: {text.strip()[-300:]!r}")
    return outcome


def drop_override() -> None:
    """Let root write only where the folder allows it, as any other user."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


def _children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], check=False, capture_output=True, text=True)
    return [int(word) for word in listed.stdout.split()]


FAULTS: dict[str, Callable[[Setting], Outcome]] = {
    "kill -9": send(signal.SIGKILL),
    "SIGTERM": send(signal.SIGTERM),
    "SIGINT": send(signal.SIGINT),
    "worker killed": kill_worker,
    "disk full": fill_disk,
    "file limit": limit_files,
    "read-only": forbid,
    "removed": remove,
    "two writers": start_twice,
}
