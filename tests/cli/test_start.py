"""Ctrl-C while modules are still imported is one word, and no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from lossscope_cli._start import explain_interrupt


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.4])
def test_ctrl_c_at_the_start_is_no_traceback(seconds: float) -> None:
    command = [sys.executable, "-P", "-m", "lossscope_cli", "list", "objectives"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert "lossscope_cli" not in shown and "/cli/" not in shown
    assert process.returncode in (0, 130, -signal.SIGINT)


def test_any_other_error_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        explain_interrupt(type(error), error, error.__traceback__)
    assert "ValueError: why" in capsys.readouterr().err
    explain_interrupt(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "Interrupted.\n"
