"""What does --help print? The options that matter first, and long choices broken between two words."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lossscope.core.choices import RUNNING

_COLUMN = 22  # letters of choices that a column of --help holds on a narrow terminal
_LINE = 20  # letters of a line of broken choices
_WIDE = 100  # columns of a terminal on which none is broken


@contextmanager
def show_first(command: Any) -> Iterator[None]:
    """Let a command have only the options that matter first, under a single heading.

    Args:
        command: with `params`, `epilog`, and `first`, names of the options in their order; where `first` is empty, all
            options matter but those that say how the command runs.
    """
    params, epilog = command.params, command.epilog
    arguments = [parameter for parameter in params if parameter.param_type_name == "argument"]
    named = {parameter.name: parameter for parameter in params if parameter not in arguments}
    first = command.first or [name for name, option in named.items() if option.rich_help_panel != RUNNING]
    shown = [named[name] for name in dict.fromkeys((*first, "help_all"))]
    headings = [parameter.rich_help_panel for parameter in shown]
    left_out = len(named) - len(shown)
    try:
        command.params = [*arguments, *shown]
        command.epilog = f"--help-all shows {left_out} more options."
        for parameter in shown:
            parameter.rich_help_panel = None
        yield
    finally:
        command.params, command.epilog = params, epilog
        for parameter, heading in zip(shown, headings, strict=True):
            parameter.rich_help_panel = heading


@contextmanager
def breakable_choices(parameters: Sequence[Any], context: Any) -> Iterator[None]:
    """Let a line end within the long choices of options, on a narrow terminal."""
    narrow = shutil.get_terminal_size().columns < _WIDE
    free = [parameter for parameter in parameters if narrow and parameter.metavar is None]
    texts = [(parameter, parameter.display_type_rich(ctx=context) or "") for parameter in free]
    long = [(parameter, text) for parameter, text in texts if len(text) > _COLUMN and "|" in text]
    try:
        for parameter, text in long:
            parameter.metavar = breakable(text)
        yield
    finally:
        for parameter, _ in long:
            parameter.metavar = None


def breakable(choices: str) -> str:
    """Return choices with a blank behind a sign wherever the next choice does not fit into a column.

    >>> breakable("<rsum|r1_r5|geometric|last>")
    '<rsum|r1_r5| geometric|last>'
    """
    lines = [""]
    for choice in choices.replace("|", "| ").split(" "):
        if len(lines[-1]) + len(choice) > _LINE:
            lines.append("")
        lines[-1] += choice
    return " ".join(lines)
