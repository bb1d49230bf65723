"""The errors that users see: each message says what was wrong, what was expected, what was given and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .visible_text import show_text

_LONGEST, _END = 1400, 200  # letters of a message, and of its end, where it is cut


class InputError(ValueError):
    """The user's input (a file, a value, a folder) cannot be used. Shown without a traceback.

    Args:
        message: what cannot be seen in it is written out, as names from a file may steer a terminal; one that is
            longer than anybody reads loses its middle.
    """

    def __init__(self, message: object = "") -> None:
        text = show_text(str(message), "\n\t")
        left_out = len(text) - _LONGEST
        super().__init__(text if left_out <= 0 else f"{text[: _LONGEST - _END]} [{left_out} letters] {text[-_END:]}")


class NoRows(InputError):
    """A frame has no rows of the requested kind; where the rows are optional, they are left out."""


class WriteError(InputError, OSError):
    """A file could not be written, because the disk is full or for another reason; what stood there before is whole."""


class Interrupted(Exception):
    """Work was interrupted by a signal; everything finished so far has been saved."""


class Stopped(Interrupted):
    """Work was stopped because of what was found in it; everything finished so far has been saved."""


class UnsupportedLoss(InputError):
    """A user's loss computes something that W of images against captions does not describe."""


class OptionError(InputError):
    """An option has a value that it cannot have, or does not go with another, whatever the source."""


class SpecError(InputError):
    """A spec such as ``ntxent:tau=0.1`` cannot be read or names something that does not exist."""


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Turn an ImportError of the lines within into an InputError with the line to type.

    Args:
        extra: of lossscope, which the packages come with.
        what: the beginning of the message: what needs which package.
    """
    try:
        yield
    except ImportError as error:
        raise InputError(f"{what}, whose import fails ({error}): pip install 'lossscope[{extra}]'") from error
