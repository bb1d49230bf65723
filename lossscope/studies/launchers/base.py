"""What starts the cells of a study: a command each, here, on a cluster, or as many processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Job(Protocol):
    """A command that was started."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        ...

    def stop(self) -> None:
        """Ask it to keep what it has and end."""
        ...

    def last(self) -> str:
        """The last line it said, for one that ended without a word of its own; empty when there is none."""
        ...


class Launcher(Protocol):
    """A frozen dataclass whose fields are its options. at_once: how many commands may run together."""

    @property
    def at_once(self) -> int: ...

    def start(self, arguments: Sequence[str], log: Path) -> Job:
        """Start `lossscope ARGUMENTS`, what it says going to the file `log`."""
        ...


class Process:
    """A job that is a process of this machine, in a session of its own so that Ctrl-C reaches it through us only."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with open(log, "ab") as told:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=told, stderr=told, env=dict(environment),
                start_new_session=True,
            )  # fmt: skip

    def poll(self) -> int | None:
        return self._process.poll()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def last(self) -> str:
        return last_line(self._log.read_text(encoding="utf-8", errors="replace"))


def last_line(text: str) -> str:
    """The last line with words."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def command(arguments: Sequence[str]) -> list[str]:
    """`lossscope ARGUMENTS` as a command of this very Python."""
    return [sys.executable, "-m", "lossscope_cli", *arguments]
