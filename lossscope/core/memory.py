"""How much memory is free, and how to retry with less when it runs out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

T = TypeVar("T")
LARGE_ENTRIES = 1 << 22  # of S, above which a batch is large: it is read block by block
ON_GPU = 16  # times as many: a launch takes about as long as an H100 takes to read 16 MB
_MESSAGES = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def free_bytes(device: torch.device) -> int:
    """Return the bytes that can be allocated without swapping: of the GPU, or of the machine or its container."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    limits = [_machine_bytes(), _container_bytes()]
    return min(limit for limit in limits if limit is not None)


def entries_at_a_time(entries: int, device: torch.device) -> int:
    """Return how many entries of S to work on at a time: more on a GPU, which is done with few before it has the next.

    Args:
        entries: that stay in the caches of a core.
        device: that computes.
    """
    return entries if device.type == "cpu" else ON_GPU * entries


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out: a MemoryError, or a RuntimeError of torch with such a message."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in message for words in _MESSAGES)
    )


def retry_smaller(work: Callable[[int], T], size: int, least: int) -> T:
    """Return work(size), halving the size as often as memory runs out, down to `least`."""
    while True:
        try:
            return work(size)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error) or size // 2 < least:
                raise
        size //= 2


def _machine_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (line,) = (line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 4 << 30  # not Linux: a cautious guess


def _container_bytes() -> int | None:
    """Return what a control group leaves; None without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = (folder / "memory.current").read_text(encoding="ascii").strip()
        return None if limit == "max" else max(int(limit) - int(used), 0)
    except (OSError, ValueError):
        return None
