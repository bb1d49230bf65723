"""The signals that a user names, built."""

from __future__ import annotations

from collections.abc import Sequence

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.registry import build, names

from ..base import Signal
from ..estimate.pair_file import pair_columns

OTHER_COLUMNS = ("probability", "score", "place", "is_copy")  # of the tables that signals are columns of


def build_signals(specs: Sequence[str], sides: Sides | None = None) -> tuple[Signal, ...]:
    """Return the signals of specs; without any, all that there are. `./file.py:NAME` is one of the user's.

    Args:
        specs: names, with options.
        sides: whose names are columns beside those of signals.

    Raises:
        InputError: two of one name, and a name that is that of another column, or of a signal that is not meant.
    """
    entries = names("signals")
    signals: tuple[Signal, ...] = tuple(build("signals", spec) for spec in specs or entries)
    columns = [signal.name() for signal in signals]
    doubled = [name for name in columns if columns.count(name) > 1]
    if doubled:
        raise InputError(f"signals must have different names; got {doubled[0]} twice")
    taken: tuple[str, ...] = OTHER_COLUMNS
    if sides is not None:
        taken += tuple(f"{name}{end}" for name in pair_columns(sides) for end in ("", "_row"))
    for signal, name in zip(signals, columns, strict=True):
        is_plugin = not type(signal).__module__.startswith("lossscope.")
        if name in taken or (is_plugin and name in entries):
            what = "a column" if name in taken else "a signal"
            todo = "Give the class another name" if is_plugin else "Give the side another name: --sides"
            raise InputError(f"signals must have names of their own; {name} is {what} already. {todo}")
    return signals
