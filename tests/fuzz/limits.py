"""Limit one case by seconds of the processor, and by bytes of address space beyond those in use."""

from __future__ import annotations

import contextlib
import faulthandler
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO

SECONDS = 10.0
BYTES = 2 << 30
GRACE = 5.0  # seconds of the processor until a call that does not return to Python ends the process
_TICK = 1.0  # seconds between looks at a case whose time on the clock is over
_IDLE = 0.002  # a case with fewer seconds of the processor in a tick is waiting, not slowed down by others
_LONGEST = 300.0  # seconds on the clock


class TimeLimit(BaseException):
    """A case took too long; no reader catches this, since it is no Exception."""


@contextlib.contextmanager
def limits(stacks: IO[str], seconds: float = SECONDS, size: int = BYTES, grace: float = GRACE) -> Iterator[None]:
    """Run a block under both limits; other work on the machine makes no hang.

    Raises TimeLimit in the block when its seconds of the processor are used, or when it has waited as long on the clock
    and still waits. If the block goes on, the process ends with its stack written to `stacks`. Allocations beyond
    the bytes fail.

    Args:
        stacks: open file.
        seconds: of the processor.
        size: bytes that the block may add to the address space.
        grace: seconds beyond, until the process ends.
    """
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    before = signal.signal(signal.SIGALRM, _Watch(seconds))
    faulthandler.register(signal.SIGPROF, file=stacks, chain=True)  # writes the stack, then the process ends
    faulthandler.dump_traceback_later(_LONGEST, exit=True, file=stacks)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + size, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds + grace)
    signal.setitimer(signal.ITIMER_REAL, seconds, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGPROF)
        signal.signal(signal.SIGALRM, before)


class _Watch:
    """The handler that looks at a case every tick."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun = seconds, time.process_time()
        self.last = self.begun

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Raise TimeLimit where the time is over, or the case has stopped working."""
        now = time.process_time()
        idle = now - self.last < _IDLE and self.last != self.begun
        self.last = now
        if idle or now - self.begun > self.seconds:
            raise TimeLimit


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
