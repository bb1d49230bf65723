"""The errors that users see: each message says what was wrong, what was expected, what was given and what to do."""

from __future__ import annotations


class InputError(ValueError):
    """The user's input (a file, a value, a folder) cannot be used. Shown without a traceback."""


class NoRows(InputError):
    """A frame has no rows of the requested kind; where the rows are optional, they are left out."""


class WriteError(InputError, OSError):
    """A file could not be written, because the disk is full or for another reason; what stood there before is whole."""


class Interrupted(Exception):
    """Work was interrupted by a signal; everything finished so far has been saved."""


class UnsupportedLoss(InputError):
    """A user's loss computes something that W of images against captions does not describe."""


class SpecError(InputError):
    """A spec such as ``ntxent:tau=0.1`` cannot be read or names something that does not exist."""
