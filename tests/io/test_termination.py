"""Does SIGTERM let a block clean up, and still end the process?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from lossscope.io.termination import clean_up_on_sigterm
from tests.each import each

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
PROGRAM = """
import os, signal
from lossscope.io.termination import clean_up_on_sigterm
def raise_signal():
    signal.raise_signal(signal.SIGTERM)
with clean_up_on_sigterm() as begin_to_clean_up:
    try:
        {work}
        print("worked", flush=True)
    finally:
        begin_to_clean_up()
        {cleaning}
        print("cleaned up", flush=True)
print("went on", flush=True)
"""


def run(work: str = "pass", cleaning: str = "pass") -> tuple[int, list[str]]:
    """Return the exit status and the lines of a program whose block works and cleans up."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work, cleaning=cleaning)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@each(
    "work, cleaning, lines",
    [
        ("raise_signal()", "pass", ["cleaned up"]),
        ("pass", "raise_signal()", ["worked", "cleaned up"]),
        ("raise_signal()", "raise_signal()", []),  # the second SIGTERM ends it at once
    ],
)
def test_the_block_cleans_up_and_the_process_ends_by_the_signal(work: str, cleaning: str, lines: list[str]) -> None:
    assert run(work, cleaning) == (-signal.SIGTERM, lines)


def test_without_a_signal_and_in_a_fork_nothing_changes() -> None:
    assert run() == (0, ["worked", "cleaned up", "went on"])
    fork = "pid = os.fork(); pid or raise_signal(); assert os.waitpid(pid, 0)[1] == signal.SIGTERM"
    assert run(fork) == (0, ["worked", "cleaned up", "went on"])


def test_the_handler_is_there_inside_the_block_only() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with clean_up_on_sigterm():
            assert callable(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        with clean_up_on_sigterm():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # somebody else's choice stays
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        with clean_up_on_sigterm():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_outside_the_main_thread_no_handler_is_installed() -> None:
    handlers: list[object] = []

    def work() -> None:
        with clean_up_on_sigterm():
            handlers.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]
