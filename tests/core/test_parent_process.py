"""Does a process end with the process that started it, and with no other?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lossscope.core.parent_process import PARENT, end_with_parent, is_alive
from tests.each import each
from tests.waiting import wait_until

CHILD = """
import sys, time
from lossscope.core.parent_process import end_with_parent
end_with_parent(0.05)
print("ready", flush=True)
time.sleep(60)
"""
STARTER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def ends(process: int, seconds: float) -> bool:
    return wait_until(lambda: not is_alive(process), seconds, 0.02)


@each("variable, value, wanted", [("TORCHELASTIC_RUN_ID", "none", True), ("NONE", "", False)])
def test_a_process_of_torchrun_ends_with_it_and_one_of_a_shell_does_not(
    variable: str, value: str, wanted: bool
) -> None:
    """After kill -9 of torchrun its processes continued to train, beside those of a resumed run."""
    environment = {name: text for name, text in os.environ.items() if name not in (PARENT, "TORCHELASTIC_RUN_ID")}
    command = [sys.executable, "-c", STARTER, CHILD]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, variable: value})
    assert starter.stdout is not None
    child = int(starter.stdout.readline())
    starter.kill()
    starter.communicate()
    try:
        assert ends(child, 10 if wanted else 0.5) == wanted
    finally:
        if is_alive(child):
            os.kill(child, signal.SIGKILL)


def test_a_worker_ends_with_the_process_that_is_named() -> None:
    named = subprocess.Popen(["sleep", "60"])
    environment = {**os.environ, PARENT: str(named.pid)}
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    assert child.poll() is None
    named.kill()
    named.wait()
    child.communicate(timeout=10)
    assert child.returncode == -signal.SIGTERM


def test_who_is_started_by_nobody_of_ours_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PARENT, raising=False)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    before = threading.active_count()
    end_with_parent()
    assert threading.active_count() == before


def test_a_process_that_is_over_is_not_alive() -> None:
    assert is_alive(os.getpid())
    over = subprocess.Popen(["true"])
    while Path(f"/proc/{over.pid}/stat").read_text(encoding="utf-8").split()[2] != "Z":
        time.sleep(0.01)
    assert not is_alive(over.pid)  # a zombie
    over.wait()
    assert not is_alive(over.pid)
