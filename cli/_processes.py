"""A command as one of many processes that torchrun started: is it, and is it the one that writes?"""

from __future__ import annotations

import os
from typing import Any


def is_one_of_many() -> bool:
    """Return whether torchrun has started more than one process."""
    return "WORLD_SIZE" in os.environ and _group().size > 1


def writes_results() -> bool:
    """Return whether this process is the one that writes results; a single process is."""
    return not is_one_of_many() or bool(_group().main)


def with_rank(message: str) -> str:
    """Return a message with the process rank before it; of a single process unchanged."""
    return f"rank {_group().rank}: {message}" if is_one_of_many() else message


def _group() -> Any:
    from lossscope.core.distributed import launched_group

    return launched_group()
