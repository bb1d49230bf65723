"""A launcher starts the workers of a study: a command for each run, here, on a cluster, or as many processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Job(Protocol):
    """A started command."""

    def poll(self) -> int | None:
        """Return the exit code, or None while the command runs."""
        ...

    def stop(self) -> None:
        """Make the command save its state and end."""
        ...

    def last(self) -> str:
        """Return the last line of its output, or an empty text; for a job that ended without writing its status."""
        ...


class Launcher(Protocol):
    """Base of a registry entry: a frozen dataclass whose fields are its options."""

    @property
    def at_once(self) -> int:
        """Number of commands that may run at once."""
        ...

    def start(self, arguments: Sequence[str], log: Path) -> Job:
        """Start `lossscope ARGUMENTS`, its output appended to the file `log`."""
        ...


class Process:
    """A job that is a process of this machine, in its own session, so that Ctrl-C does not reach it directly."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start the process.

        Args:
            command: the program and its arguments.
            log: file that its output is appended to.
            environment: all of its environment variables.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log, self._start = log, log.stat().st_size if log.is_file() else 0
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(environment),
                start_new_session=True,
            )  # fmt: skip

    def poll(self) -> int | None:
        return self._process.poll()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def last(self) -> str:
        return last_line(self.output())

    def output(self) -> str:
        """Return its output, without that of earlier jobs."""
        with open(self._log, "rb") as file:
            file.seek(self._start)
            return file.read().decode("utf-8", errors="replace")


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def command(arguments: Sequence[str]) -> list[str]:
    """Return `lossscope ARGUMENTS` as a command of this Python, which imports nothing from the current folder."""
    return [sys.executable, "-P", "-m", "lossscope_cli", *arguments]
