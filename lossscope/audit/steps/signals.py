"""Build the signals that a user names."""

from __future__ import annotations

from collections.abc import Sequence

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.registry import build, names

from ..base import Signal
from ..estimate.pair_file import pair_columns

OTHER_COLUMNS = ("probability", "score", "place", "is_copy")  # of the tables with signals as columns


def build_signals(specs: Sequence[str], sides: Sides | None = None) -> tuple[Signal, ...]:
    """Return the signals of specs, or all signals if there are none. `./file.py:NAME` is a user's signal.

    Args:
        specs: names, with options.
        sides: their names are columns beside the signals.

    Raises:
        InputError: two signals of the same name, or a name of another column or of another signal.
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
