"""How much memory is left, and what to do when there was less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

T = TypeVar("T")
_TOLD = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def free_bytes(device: torch.device) -> int:
    """Bytes that can be had without anybody being swapped out: of the GPU, or of the machine or its container."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = [_of_machine(), _of_container()]
    return min(value for value in found if value is not None)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: Python's own, or torch's ways of saying the same."""
    told = str(error).lower()
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(word in told for word in _TOLD))


def retry_smaller(work: Callable[[int], T], size: int, least: int) -> T:
    """work(size), with half the size as often as memory runs out, down to `least`."""
    while True:
        try:
            return work(size)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error) or size // 2 < least:
                raise
        size //= 2


def _of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (line,) = (one for one in lines if one.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 4 << 30  # not Linux: a sober guess


def _of_container() -> int | None:
    """What a control group leaves, where one limits."""
    folder = Path("/sys/fs/cgroup")
    try:
        most = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = (folder / "memory.current").read_text(encoding="ascii").strip()
        return None if most == "max" else max(int(most) - int(used), 0)
    except (OSError, ValueError):
        return None
