"""Do the processes of torchrun end when it is killed, and can the run be resumed?"""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lossscope.core.parent_process import is_alive
from lossscope.io.folder_lock import is_locked

TRAIN = [
    "--data", "scenes:train=40,val=10,test=10,size=16", "--encoder", "vsepp:dim=8,words=8,width=4", "--objective",
    "ntxent", "--batch-size", "16", "--epochs", "500", "--save-every", "1", "--device", "cpu", "--quiet",
]  # fmt: skip


def wait_for(condition: object, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_of(run: Path) -> set[int]:
    """Return the processes whose command names a run."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(run).encode() in file.read_bytes():
                found.add(int(file.parent.name))
    return found


def test_kill_9_of_torchrun_ends_its_processes_and_the_lock_holds_until_then(tmp_path: Path) -> None:
    """The processes trained on, and a resumed run wrote beside them."""
    run = tmp_path / "run"
    command = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
    process = subprocess.Popen(
        [*command, "lossscope_cli", "train", *TRAIN, "--out", str(run)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(lambda: (run / "trajectory.csv").is_file() or process.poll() is not None)
        ranks = processes_of(run) - {process.pid}
        assert len(ranks) >= 2 and is_locked(run)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_for(lambda: not is_locked(run), 60)
        wait_for(lambda: not any(map(is_alive, ranks)), 5)  # a process that ends gives up its lock a moment before
        with open(run / "trajectory.csv", encoding="utf-8", newline="") as file:
            rows = [(int(row["epoch"]), int(row["step"])) for row in csv.DictReader(file)]
        time.sleep(1)
        assert rows == sorted(set(rows))
        with open(run / "trajectory.csv", encoding="utf-8", newline="") as file:
            assert len(list(csv.DictReader(file))) == len(rows)  # nobody writes any more
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
