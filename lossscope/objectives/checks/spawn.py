"""Many processes on one batch: a gather that keeps gradients, groups that need no network port, a run with an end."""

from __future__ import annotations

import contextlib
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

from lossscope.core.distributed import is_lost_process, loopback, process_group

from .verdict import raised

TIMEOUT = 180.0  # seconds for all, and for the others to tell once one has failed
GRACE = 1.0


class RankError(RuntimeError):
    """A process raised, died or never answered; the message says what it said last."""


def gathered(x: Tensor) -> Tensor:
    """(n, d) of every rank -> (ranks · n, d), in the order of ranks, with its gradient; n may differ between ranks.

    A gather without gradient loses what the other ranks' losses say of one's own embeddings: once gradients are
    averaged over ranks, 1/ranks of them is left.
    """
    return process_group().rows(x)


def averaged(x: Tensor) -> Tensor:
    """The mean over ranks; x itself outside a group."""
    return process_group().sum(x) / process_group().size


@contextlib.contextmanager
def group(meeting: Path, rank: int, ranks: int) -> Iterator[None]:
    """A gloo group that meets over a file and talks over the loopback interface."""
    loopback()
    dist.init_process_group("gloo", init_method=meeting.absolute().as_uri(), rank=rank, world_size=ranks)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def solitary(attempt: Callable[[], Any]) -> Iterator[None]:
    """A group of this process alone, where `attempt` complains that there is none."""
    try:
        attempt()
    except Exception as error:
        needed = "process group" in str(error) and not dist.is_initialized()
    else:
        needed = False
    if not needed:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder, group(Path(folder) / "meeting", 0, 1):
        yield


def run(measure: Callable[..., Any], ranks: int, *arguments: Any) -> Any:
    """What `measure(rank, ranks, meeting, *arguments)` gives on rank 0, run in as many new processes.

    `meeting` is the path for `group`. Raises RankError when a process fails or they do not finish in time.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
        given = (measure, ranks, folder, arguments)
        running = [context.Process(target=_process, args=(rank, *given), daemon=True) for rank in range(ranks)]
        try:
            for process in running:
                process.start()
            _await(running, Path(folder))
        finally:
            for process in running:
                if process.is_alive():
                    process.kill()
                    process.join()
        return torch.load(Path(folder) / "found.pt", weights_only=False)  # written by our own rank 0


def _process(rank: int, measure: Callable[..., Any], ranks: int, folder: str, arguments: tuple[Any, ...]) -> None:
    os.dup2(2, 1)  # what a loss prints is no result of ours
    torch.set_num_threads(1)
    try:
        found = measure(rank, ranks, Path(folder) / "meeting", *arguments)
    except Exception as error:
        (Path(folder) / f"rank-{rank}").write_text(f"rank {rank} {raised(error)}", encoding="utf-8")
        sys.exit(1)
    if rank == 0:
        torch.save(found, Path(folder) / "found.pt")


def _await(running: list[Any], folder: Path) -> None:
    """Return when all have finished. Raises RankError."""
    end = time.monotonic() + TIMEOUT
    while True:
        codes = [process.exitcode for process in running]
        if any(codes):
            time.sleep(GRACE)
            raise RankError(_cause([process.exitcode for process in running], folder))
        if None not in codes:
            return
        if time.monotonic() > end:
            raise RankError(f"no answer after {TIMEOUT:g} s: one may wait for what another never sends")
        connection.wait([process.sentinel for process in running if process.exitcode is None], timeout=1)


def _cause(codes: list[int | None], folder: Path) -> str:
    """What the first rank to fail said: the others only complain, in gloo's words, that it has gone."""
    told = {rank: path.read_text("utf-8") for rank in range(len(codes)) if (path := folder / f"rank-{rank}").is_file()}
    silent = [f"rank {rank} {_ended(code)}" for rank, code in enumerate(codes) if code and rank not in told]
    own = [text for text in told.values() if not is_lost_process(text)]
    return [*own, *silent, *told.values()][0]


def _ended(code: int) -> str:
    if code == -9:
        return "was killed from outside (SIGKILL), as when memory runs out: try again"
    return f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
