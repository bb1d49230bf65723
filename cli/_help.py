"""What --help prints of choices that are longer than a column: they are broken between two of them, not within one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_COLUMN = 22  # letters of choices that a column of --help holds on a narrow terminal
_WIDE = 100  # columns of a terminal on which none is broken


@contextmanager
def breakable_choices(parameters: Sequence[Any], context: Any) -> Iterator[None]:
    """Let the long choices of options have a blank where a line may end, on a narrow terminal."""
    narrow = shutil.get_terminal_size().columns < _WIDE
    named = [one for one in parameters if narrow and one.metavar is None]
    texts = {one.name: (one, one.display_type_rich(ctx=context) or "") for one in named}
    long = [(one, text) for one, text in texts.values() if len(text) > _COLUMN and "|" in text]
    try:
        for one, text in long:
            one.metavar = breakable(text)
        yield
    finally:
        for one, _ in long:
            one.metavar = None


def breakable(choices: str) -> str:
    """Return choices with a blank behind the sign next to their middle.

    >>> breakable("<rsum|r1_r5|geometric|last>")
    '<rsum|r1_r5| geometric|last>'
    """
    places = [place for place, letter in enumerate(choices) if letter == "|"]
    middle = min(places, key=lambda place: abs(2 * place - len(choices)))
    return f"{choices[: middle + 1]} {choices[middle + 1 :]}"
