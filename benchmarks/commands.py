"""Time whole commands for the benchmarks: a run in a new process, start and reading included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def run_command(folder: Path, options: Sequence[str]) -> tuple[float, float, list[dict[str, object]]]:
    """Return the wall seconds of `lossscope cocos`, the peak of its memory in MB, and its rows.

    Args:
        folder: the source; the cache is beside it.
        options: of the command.
    """
    command = [sys.executable, "-m", "lossscope_cli", "cocos", str(folder), *options, "--format", "json", "--quiet"]
    environment = {**os.environ, "LOSSSCOPE_CACHE": str(folder.with_name("cache"))}
    out, start = folder.with_name("out.json"), time.perf_counter()
    with open(out, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, env=environment)
        megabytes = 0.0
        while process.poll() is None:
            megabytes = max(megabytes, _peak_so_far(process.pid))
            time.sleep(0.02)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"`{' '.join(command)}` must succeed; it ended with {process.returncode}")
    return seconds, megabytes, json.loads(out.read_text(encoding="utf-8"))["rows"]


def _peak_so_far(pid: int) -> float:
    """Return the largest memory of a process until now in MB, or 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")), 0.0)
