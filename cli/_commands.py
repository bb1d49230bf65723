"""Which commands are there, and which of them does a command line need? To import and to build each takes time."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import chain

import typer
from typer.models import CommandInfo

from lossscope.declarations import declarations

from ._app import app, name_of
from ._start import end_at_ctrl_c, no_garbage

HEADINGS = {
    "Commands": ("doctor", "cocos", "eval", "diff", "audit", "diagram", "train", "demo"),
    "Measure": ("probe", "analyse", "trajectory", "mine"),
    "Compare": ("compare",),
    "Data": ("data", "convert", "verify"),
    "Paper": ("study", "report", "render", "cite"),
    "Tools": ("check", "list", "cache"),
}
"""Heading of --help -> its commands, in the order in which a user asks."""
_FILES = {"eval": "evaluate", "list": "listing", "table": "render", "plot": "render"}  # of commands with another name
_GROUPS = {
    "analyse": ("analyse", "analyse_alignment", "analyse_factors", "analyse_transfer", "analyse_utility"),
    "data": ("data", "data_generate", "data_lint"),
    "study": ("study", "study_multiverse", "study_power"),
}
"""Command with commands of its own -> their files."""


def main() -> None:
    """Run the console script."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        app_of(sys.argv[1:])()
    finally:
        end_at_ctrl_c()


def whole_app() -> typer.Typer:
    """Return lossscope with all its commands."""
    with no_garbage():
        for name in chain.from_iterable(HEADINGS.values()):
            for module in _GROUPS.get(name, (_FILES.get(name, name),)):
                import_module(f".{module}", __package__)
        for item in declarations("probes"):
            _register_probe(item.name.replace("_", "-"))
    headings = {name: heading for heading, names in HEADINGS.items() for name in names}
    order = list(headings)
    for registered in app.registered_commands:
        registered.rich_help_panel = headings.get(name_of(registered))
    for group in app.registered_groups:
        group.rich_help_panel = headings[str(group.name)]
    app.registered_commands.sort(key=lambda registered: _position(name_of(registered), order))
    return app


def app_of(words: Sequence[str]) -> typer.Typer:
    """Return lossscope with what a command line needs: the command that is typed, or all where that is none.

    For its own --help all commands are there without their options.

    Args:
        words: of the command line, after the name.
    """
    if list(words) in ([], ["--help"], ["-h"]):
        return _without_options(whole_app())
    typed = _typed(words[0]) if words else None
    if typed is None:
        return whole_app()
    return _with(app, [typed])


def _typed(word: str) -> CommandInfo | None:
    """Import the file of the command that is typed as `word`, and return it; None for a group and an unknown word."""
    with no_garbage():
        if word in _GROUPS:
            return None
        if word in _FILES or word in chain.from_iterable(HEADINGS.values()):
            import_module(f".{_FILES.get(word, word)}", __package__)
        else:
            _register_probe(word)
    return next((registered for registered in app.registered_commands if name_of(registered) == word), None)


def _register_probe(name: str) -> None:
    """Make the command of a probe; nothing where there is none."""
    import_module(".probe", __package__).register_probe(name)


def _position(name: str, order: list[str]) -> tuple[int, str]:
    """Return where a command stands among the others: hidden ones last, by name."""
    return (order.index(name), "") if name in order else (len(order), name)


def _without_options(whole: typer.Typer) -> typer.Typer:
    """Return lossscope with commands that have their names and texts alone, and groups without commands."""
    sketched = _with(whole, [_sketch(registered) for registered in whole.registered_commands])
    sketched.registered_groups = [copy.copy(group) for group in whole.registered_groups]
    for group in sketched.registered_groups:
        group.typer_instance = _with(group.typer_instance, []) if group.typer_instance else None
    return sketched


def _with(group: typer.Typer, commands: list[CommandInfo]) -> typer.Typer:
    """Return a group with these commands alone."""
    alone = copy.copy(group)
    alone.registered_commands, alone.registered_groups = commands, []
    return alone


def _sketch(registered: CommandInfo) -> CommandInfo:
    """Return a command that does nothing, with the name and the text of another."""
    sketch = copy.copy(registered)
    sketch.name, sketch.help, sketch.callback = name_of(registered), inspect.getdoc(registered.callback), _nothing
    return sketch


def _nothing() -> None: ...
