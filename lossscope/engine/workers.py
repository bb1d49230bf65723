"""Run independent pieces of work in threads, one core each; results come in the order of the pieces."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from lossscope.errors import InputError
from lossscope.objectives.counting.block import Buffers

P = TypeVar("P")
R = TypeVar("R")


class Workers:
    """A pool of n threads; with n = 1 all work runs in the caller's thread, with all its threads of torch.

    The threads and their memory live until the `with` block ends.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self._pool: ThreadPoolExecutor | None = None
        self._memory = threading.local()
        self._threads_of_torch = 0  # before the pool began

    def run(self, work: Callable[[P, Buffers], R], pieces: Iterable[P], ahead: int | None = None) -> Iterator[R]:
        """Yield the result of each piece, in order; draw the next pieces while earlier pieces run.

        Args:
            work: called with a piece and the memory of its thread.
            pieces: drawn in the caller's thread, at most one for each job ahead of the results.
            ahead: number of pieces to draw ahead of the results, at most; None: one for each job.
        """
        most = self.jobs if ahead is None else min(self.jobs, ahead)
        if most == 1:
            buffers = Buffers()
            for piece in pieces:
                yield work(piece, buffers)
            return
        waiting: deque[Future[R]] = deque()
        pool = self._start_pool()
        try:
            for piece in pieces:
                waiting.append(pool.submit(self._in_thread, work, piece))
                if len(waiting) > most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # also after an error or Ctrl-C: pieces that have not begun never do
            for future in waiting:
                future.cancel()
            wait(waiting)

    def _in_thread(self, work: Callable[[P, Buffers], R], piece: P) -> R:
        if not hasattr(self._memory, "buffers"):
            torch.set_num_threads(1)  # of this thread alone
            self._memory.buffers = Buffers()
        with torch.inference_mode(False), torch.no_grad():
            return work(piece, self._memory.buffers)

    def _start_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._threads_of_torch = torch.get_num_threads()
            self._pool = ThreadPoolExecutor(self.jobs, thread_name_prefix="lossscope")
        return self._pool

    def __enter__(self) -> Workers:
        """Begin a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            torch.set_num_threads(self._threads_of_torch)  # later threads would inherit the last setting
            self._pool = None


class Behind:
    """Run a piece of work in a background thread; each piece, and the end of the block, waits for the last piece.

    With one job all work runs at once, in the caller's thread.
    """

    def __init__(self, jobs: int) -> None:
        self._pool = None if jobs == 1 else ThreadPoolExecutor(1, thread_name_prefix="lossscope")
        self._last: Future[None] | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Begin a piece of work. Raises the error of the last piece, if any."""
        if self._pool is None:
            work()
            return
        self.wait()
        self._last = self._pool.submit(work)

    def wait(self) -> None:
        """Wait for the last piece of work, and raise its error, if any."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def __enter__(self) -> Behind:
        """Begin a block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the last piece; an error of the block wins over an error of the piece."""
        try:
            if kind is None:
                self.wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown(wait=True)


ALONE = Workers()
"""The thread of the caller."""
VARIABLE = "LOSSSCOPE_JOBS"


def number_of_jobs(given: int | None = None) -> int:
    """Return the number of threads: as given, else LOSSSCOPE_JOBS, else the cores of this process.

    Processes that torchrun started on one machine have an equal share of its cores. Raises InputError for fewer than 1.
    """
    typed = os.environ.get(VARIABLE)
    if given is None and typed:
        if not typed.isdecimal() or int(typed) < 1:
            raise InputError(f"{VARIABLE} must be a number of threads, at least 1; got {typed!r}. Write {VARIABLE}=2")
        return int(typed)
    if given is not None:
        if given < 1:
            raise InputError(f"--jobs must be at least 1; got {given}")
        return given
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS and Windows
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
