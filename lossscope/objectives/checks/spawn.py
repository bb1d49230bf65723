"""Run a function in several processes: a gather with gradients, groups that need no network port, and a time limit."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, multiprocessing

from lossscope.core.distributed import is_lost_process, process_group, use_loopback
from lossscope.core.parent_process import no_modules_of_the_current_folder
from lossscope.io.trusted_code import TrustedCode, trust, trusted_code

from .verdict import describe_error

TIMEOUT = 180.0  # seconds for all processes
GRACE = 1.0  # seconds for the others to report once one has failed


class ProcessError(RuntimeError):
    """A process raised an error, died or did not finish; the message is what it reported last."""


def gather_with_gradients(x: Tensor) -> Tensor:
    """Concatenate the rows (n, d) of all processes by rank, with gradient; n may differ between processes.

    A gather without gradient loses the gradient of the other processes' losses with respect to one's own embeddings:
    once gradients are averaged over N processes, 1/N of it is left.
    """
    return process_group().gather_rows(x)


def average_over_processes(x: Tensor) -> Tensor:
    """Return the mean over processes; x itself outside a group."""
    return process_group().sum(x) / process_group().size


@contextlib.contextmanager
def join_file_group(
    file: Path,
    rank: int,
    size: int,
    timeout: datetime.timedelta | None = None,
    backend: str = "gloo",
    device: str = "cpu",
) -> Iterator[None]:
    """Join a group that is initialised over a file and uses the loopback interface.

    Args:
        file: that none of the processes has used before.
        rank: of this process.
        size: number of processes.
        timeout: to wait for what another process sends; None: torch's.
        backend: `gloo`, or `nccl` on GPUs.
        device: that this process computes on.
    """
    use_loopback()
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    address = file.absolute().as_uri()
    dist.init_process_group(backend, init_method=address, rank=rank, world_size=size, timeout=timeout)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def group_if_required(attempt: Callable[[], Any]) -> Iterator[None]:
    """Join a group of this process alone, if `attempt` raises an error that it needs a process group."""
    try:
        attempt()
    except Exception as error:
        required = "process group" in str(error) and not dist.is_initialized()
    else:
        required = False
    if not required:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder, join_file_group(Path(folder) / "group", 0, 1):
        yield


def run_processes(function: Callable[..., Any], processes: int, *arguments: Any) -> Any:
    """Run `function(rank, processes, file, *arguments)` in new processes and return the result of rank 0.

    Args:
        function: importable by name.
        processes: how many.
        arguments: passed on; `file` is the path for `join_file_group`.

    Raises:
        ProcessError: when a process fails or they do not finish in time.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
        common = (function, processes, folder, trusted_code(), arguments)
        running = [context.Process(target=_run, args=(rank, *common), daemon=True) for rank in range(processes)]
        try:
            with no_modules_of_the_current_folder():
                for process in running:
                    process.start()
            _wait(running, Path(folder))
        finally:
            for process in running:
                if process.is_alive():
                    process.kill()
                    process.join()
        return torch.load(Path(folder) / "result.pt", weights_only=False)  # written by rank 0 of this run


def _run(
    rank: int,
    function: Callable[..., Any],
    processes: int,
    folder: str,
    trusted: TrustedCode,
    arguments: tuple[Any, ...],
) -> None:
    os.dup2(2, 1)  # what a loss prints is no result
    torch.set_num_threads(1)
    try:
        with trust(more=trusted):
            result = function(rank, processes, Path(folder) / "group", *arguments)
    except Exception as error:
        (Path(folder) / f"rank-{rank}").write_text(f"rank {rank} {describe_error(error)}", encoding="utf-8")
        sys.exit(1)
    if rank == 0:
        torch.save(result, Path(folder) / "result.pt")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)  # threads of gloo that a graph still refers to can end Python with SIGABRT when it cleans up


def _wait(running: list[Any], folder: Path) -> None:
    """Return when all processes have finished. Raises ProcessError."""
    end = time.monotonic() + TIMEOUT
    while True:
        codes = [process.exitcode for process in running]
        if any(codes):
            time.sleep(GRACE)
            raise ProcessError(_cause([process.exitcode for process in running], folder))
        if None not in codes:
            return
        if time.monotonic() > end:
            raise ProcessError(f"no result after {TIMEOUT:g} s: one may wait for what another never sends")
        connection.wait([process.sentinel for process in running if process.exitcode is None], timeout=1)


def _cause(codes: list[int | None], folder: Path) -> str:
    """Return the error of the first rank to fail: the others only report, in gloo's words, that it has gone."""
    files = {rank: folder / f"rank-{rank}" for rank in range(len(codes))}
    errors = {rank: path.read_text("utf-8") for rank, path in files.items() if path.is_file()}
    silent = [f"rank {rank} {_describe_exit(code)}" for rank, code in enumerate(codes) if code and rank not in errors]
    causes = [text for text in errors.values() if not is_lost_process(text)]
    return [*causes, *silent, *errors.values()][0]


def _describe_exit(code: int) -> str:
    if code == -9:
        return "was killed from outside (SIGKILL), as when memory runs out: try again"
    return f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
