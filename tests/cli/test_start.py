"""Ctrl-C while modules are still imported is one word, and no traceback."""

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


def test_any_other_error_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        explain_interrupt(type(error), error, error.__traceback__)
    assert "ValueError: why" in capsys.readouterr().err
    explain_interrupt(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "Interrupted.\n"
