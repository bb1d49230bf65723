"""Ctrl-C while modules are still imported, or when all is done, is no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from lossscope_cli._start import explain_interrupt


@pytest.mark.parametrize("module", ["lossscope_cli._start", "typer", "lossscope_cli.cocos"])
def test_ctrl_c_at_the_start_is_no_traceback(module: str) -> None:
    """After one of the modules that are imported; before the first of them Python itself is not ready."""
    command = [sys.executable, "-P", "-X", "importtime", "-m", "lossscope_cli", "list", "objectives"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == module:
            break
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    said = [line for line in shown.splitlines() if not line.startswith("import time:")]
    assert not [line for line in said if "lossscope_cli" in line or "/cli/" in line]
    assert process.returncode in (0, 130, -signal.SIGINT)


STRUCK = """
import os, signal, sys, lossscope_cli
if {struck}:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:  # as torch does while it imports numpy
        pass
raise RecursionError("maximum recursion\\ndepth exceeded")
"""
IGNORED = """
import os, signal, time, lossscope_cli

class Struck:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

Struck()
time.sleep(30)
raise ValueError("the interrupt was lost")
"""
AT_EXIT = """
import atexit, os, signal, sys, lossscope_cli
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["lossscope", "--version"]
lossscope_cli.main()
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in which Ctrl-C interrupts, also where a shell in the background has it ignored."""
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"
    return subprocess.run([sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True)


def test_an_interrupt_that_a_module_swallowed_is_one_line() -> None:
    """Ctrl-C while torch imported numpy was a RecursionError of 900 lines."""
    said = python(STRUCK.format(struck=True)).stderr
    assert said == "Interrupted; what was broken off raised RecursionError: maximum recursion depth exceeded\n"
    assert "Traceback" in python(STRUCK.format(struck=False)).stderr


def test_an_interrupt_within_a_destructor_is_not_lost() -> None:
    assert python(IGNORED).stderr == "Interrupted.\n"


def test_ctrl_c_when_all_is_done_is_no_traceback() -> None:
    done = python(AT_EXIT)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    assert done.stdout


def test_any_other_error_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        explain_interrupt(type(error), error, error.__traceback__)
    assert "ValueError: why" in capsys.readouterr().err
    explain_interrupt(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "Interrupted.\n"
