"""What went wrong in words a user can act on: every message says what, what was expected, what came, what to do."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave (a file, a value, a folder) can not be used. Shown without a traceback."""


class NoRows(InputError):
    """A frame has no rows of what was asked for; where that is optional it is left out."""


class Interrupted(Exception):
    """Work was asked to stop; everything finished so far has been kept."""


class SpecError(InputError):
    """A spec such as ``ntxent:tau=0.1`` can not be read or names something that does not exist."""
