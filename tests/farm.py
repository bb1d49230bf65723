"""Run ranks and commands in warm processes: each is forked from one process that has imported everything.

A process that is started anew imports for three seconds before it does anything. One that is forked begins at once, and
has the state of a new one: nothing of the test that asks for it but the environment, the folder and the modules' path.
Tests that kill processes start their own.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import runpy
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing import connection, forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "HF_HUB_OFFLINE": "1"}
"""Environment that must be set before torch, matplotlib and the hub's library are imported."""
PRELOADED = (
    "torch", "torch.distributed", "torch._dynamo", "pandas", "pyarrow.parquet", "matplotlib.pyplot", "seaborn",
    "safetensors.torch", "scipy.stats", "pytest", "hypothesis", "typer.testing", "lossscope_cli",
    "lossscope.training.loop", "lossscope.studies.report", "lossscope.engine.sweep", "lossscope.live.monitor",
    "lossscope.conformance.suite", "sentence_transformers", "pytorch_metric_learning", "tests.farm",
    "tests.fuzz.worker", "tests.warm",
)  # fmt: skip
"""Modules that most processes need."""
SECONDS = 300.0  # that the processes of one call may take together


def collect_seldom() -> None:
    """Let Python never search the existing objects for garbage, and seldom the rest.

    What is frozen is not counted, so that Python's own threshold of 700 objects would make it collect far too often.
    """
    gc.freeze()
    gc.set_threshold(20_000)


@cache
def context() -> ForkServerContext:
    """Start the warm process, and return the context whose processes are forked from it."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(list(PRELOADED))
    before = dict(os.environ)
    os.environ.update({**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(ROOT), *_paths(before)])})
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return made


def process(
    target: Callable[..., object],
    args: tuple[Any, ...],
    daemon: bool = True,
    environment: Mapping[str, str] | None = None,
) -> ForkServerProcess:
    """Return a process, not yet started, that will call `target(*args)` in the present folder.

    Args:
        target: importable by name.
        args: of it.
        daemon: whether it ends with this process.
        environment: variables that it sees; None: those of this process at this moment.
    """
    here = (dict(environment or os.environ), os.getcwd(), list(sys.path))
    return context().Process(target=_call_as_here, args=(*here, target, args), daemon=daemon)


def run_ranks(function: Callable[..., Any], size: int, *arguments: Any) -> list[Any]:
    """Run `function(*arguments)` in a gloo group of warm processes and return what each returns, by rank.

    Args:
        function: importable by name.
        size: number of processes.
        arguments: passed on.

    Raises:
        RuntimeError: when a process fails, with the traceback of the first to fail, or is killed.
    """
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        running = [process(_call_in_group, (rank, size, folder, function, arguments)) for rank in range(size)]
        _run(running, lambda: _failures(Path(folder)))
        if killed := [-code for code in (done.exitcode for done in running) if code is not None and code < 0]:
            raise RuntimeError(f"killed by signal {killed[0]}, for want of memory perhaps")
        return [pickle.loads((Path(folder) / f"{rank}.pickle").read_bytes()) for rank in range(size)]


def run_command(
    *words: str, cwd: Path | None = None, ranks: int = 1, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `lossscope WORDS` and return its exit code, output and errors.

    Args:
        words: of the command line, after the name.
        cwd: folder that it runs in; None: the current one.
        ranks: of a job, as torchrun starts them; the output is that of all.
        environment: variables that it sees; None: those of this process.
    """
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        files = [Path(folder) / name for name in ("stdout", "stderr")]
        port = _free_port() if ranks > 1 else 0
        running = [
            process(
                _call_command,
                (words, str(cwd or Path.cwd()), [str(file) for file in files], rank, ranks, port),
                environment=environment,
            )
            for rank in range(ranks)
        ]
        _run(running, lambda: "")
        output, errors = (file.read_text("utf-8") if file.exists() else "" for file in files)
    codes = [done.exitcode for done in running]
    return subprocess.CompletedProcess(list(words), next(filter(None, codes), 0), output, errors)


@contextmanager
def warm_spawning() -> Iterator[None]:
    """Let `lossscope check`, and all else that starts processes by `objectives.checks.spawn`, use warm ones.

    Not on a GPU: a process that is forked from one that has seen it cannot use it.
    """
    from lossscope.objectives.checks import spawn

    if os.environ.get("LOSSSCOPE_TEST_DEVICE", "").startswith("cuda"):
        yield
        return
    before = spawn.multiprocessing
    warm = SimpleNamespace(Process=process)
    spawn.multiprocessing = SimpleNamespace(get_context=lambda _: warm)  # type: ignore[assignment]
    try:
        yield
    finally:
        spawn.multiprocessing = before


class Job:
    """A job of a study's launcher that is a warm process; it outlives this process."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log, words = log, command[list(command).index("lossscope_cli") + 1 :]
        self._process = process(_call_command, (words, str(Path.cwd()), [str(log)] * 2, 0, 1, 0))
        self._process.start()

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.exitcode

    def stop(self) -> None:
        """Make it save its state and end."""
        self._process.terminate()

    def last(self) -> str:
        """Return the last line of its output."""
        return (self._log.read_text("utf-8").split("\n") or [""])[-1]


@contextmanager
def warm_jobs() -> Iterator[None]:
    """Let the launcher `local` of studies take warm processes; tests/studies/launchers starts real ones."""
    from lossscope.studies.launchers import local

    before = local.Process
    local.Process = Job  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        local.Process = before  # type: ignore[misc]


def _run(running: Sequence[ForkServerProcess], failure: Callable[[], str]) -> None:
    """Start processes and wait for all. Raises RuntimeError with the text of `failure` once a process has failed."""
    for child in running:
        child.start()
    end = time.monotonic() + SECONDS
    try:
        while waiting := [child for child in running if child.exitcode is None]:
            if (cause := failure()) or time.monotonic() > end:
                raise RuntimeError(cause or f"no result after {SECONDS:g} s")
            connection.wait([child.sentinel for child in waiting], timeout=1)
        if cause := failure():
            raise RuntimeError(cause)
    finally:
        for child in running:
            if child.is_alive():
                child.kill()
            child.join()


def _failures(folder: Path) -> str:
    """Return the traceback of the process that failed first; later failures only miss that process."""
    files = sorted(folder.glob("*.failed"), key=lambda path: path.stat().st_mtime_ns)
    return files[0].read_text("utf-8") if files else ""


def _call_as_here(
    environment: Mapping[str, str], folder: str, path: list[str], target: Callable[..., object], args: tuple[Any, ...]
) -> None:
    """Call a function in a forked process that has the environment, folder and path of the one that asked for it."""
    import torch

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = path
    torch.set_num_threads(1)
    target(*args)


def _call_in_group(rank: int, size: int, folder: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    from lossscope.objectives.checks.spawn import join_file_group

    try:
        with join_file_group(Path(folder) / "group", rank, size):
            result = pickle.dumps(function(*arguments))
    except BaseException:
        (Path(folder) / f"{rank}.failed.part").write_text(f"rank {rank}\n{traceback.format_exc()}", "utf-8")
        (Path(folder) / f"{rank}.failed.part").rename(Path(folder) / f"{rank}.failed")
        os._exit(1)
    (Path(folder) / f"{rank}.pickle").write_bytes(result)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)  # threads of gloo may abort a process that cleans up slowly


def _call_command(words: Sequence[str], cwd: str, files: Sequence[str], rank: int, ranks: int, port: int) -> None:
    """Run `lossscope WORDS` in this process as rank `rank` of a job; output and errors go to files."""
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(cwd)
    if ranks > 1:
        size = str(ranks)
        os.environ.update({"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": size, "RANK": str(rank)})
        os.environ.update({"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": size})
    sys.argv = ["lossscope", *words]
    runpy.run_module("lossscope_cli", run_name="__main__", alter_sys=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def _paths(environment: Mapping[str, str]) -> list[str]:
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
