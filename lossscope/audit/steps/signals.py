"""The signals that a user names, built."""

from __future__ import annotations

from collections.abc import Sequence

from lossscope.errors import InputError
from lossscope.registry import build, names

from ..base import Signal


def build_signals(specs: Sequence[str]) -> tuple[Signal, ...]:
    """Return the signals of specs; without any, all that there are. `./file.py:NAME` is one of the user's.

    Raises InputError where two have one name.
    """
    signals = tuple(build("signals", spec) for spec in specs or names("signals"))
    columns = [signal.name() for signal in signals]
    doubled = [name for name in columns if columns.count(name) > 1]
    if doubled:
        raise InputError(f"signals must have different names; got {doubled[0]} twice")
    return signals
