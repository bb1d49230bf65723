"""Is the help of every command whole at the usual widths, and do options with known values complete them?"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from lossscope_cli import app
from rich.cells import cell_len
from typer import Context

from tests.command_line import lossscope, plain, tree
from tests.each import each

COMPLETED = ("--format", "--split", "--test", "--triplet", "--pair", "--objective", "--encoder")


def commands(group: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the words and the command of every command, those of groups included."""
    whole: Any = tree(app)
    for name, command in (group or whole).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(commands())
OPTIONS = [
    (words, option)
    for words, command in COMMANDS.items()
    for parameter in command.params
    for option in parameter.opts
    if option in COMPLETED
]


def shown_help(words: str, width: int) -> str:
    result = lossscope(*words.split(), "--help", columns=width)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@each("words", COMMANDS, "width", [80, 100])
def test_help_is_no_wider_than_the_terminal_and_shows_examples_options_and_choices_whole(
    words: str, width: int
) -> None:
    """Of `train` an option was cut off at 80 columns, and a choice was broken within a word."""
    text = shown_help(words, width)
    if words not in ("demo", "study worker"):
        assert f"lossscope {words} " in plain(text).partition("Examples")[2]
    assert "…" not in text and all(cell_len(line) <= width for line in text.splitlines())
    parts = set(re.findall(r"[\w.@-]+", text))
    for parameter in COMMANDS[words].params:
        names = [*parameter.opts, *parameter.secondary_opts] if parameter.opts[0].startswith("-") else []
        assert set(names) <= parts
        choices = re.fullmatch(r"<(.*\|.*)>", parameter.display_type_rich(Context(COMMANDS[words])) or "")
        assert choices is None or set(choices[1].split("|")) <= parts


HELP_AND_LISTS = """
import sys, lossscope_cli
from typer.main import get_command

command = get_command(lossscope_cli.app)
for line in sys.argv[1:]:
    command(line.split(), standalone_mode=False)
(probes,) = [option for option in command.commands["probe"].params if "--probes" in option.opts]
assert [item.value for item in probes.shell_complete(None, "si")] == ["similarity"]
heavy = {"torch", "numpy", "pandas", "matplotlib", "scipy", "sklearn", "nltk"}
print(sorted(heavy & set(sys.modules)), [name for name in sys.modules if name.startswith("lossscope.probes")])
"""


def test_help_and_lists_import_nothing_heavy() -> None:
    lines = ["--help", *(f"{words} --help" for words in COMMANDS), "list signals"]
    done = subprocess.run([sys.executable, "-c", HELP_AND_LISTS, *lines], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] []"


def test_there_are_commands_and_options() -> None:
    assert {option for _, option in OPTIONS} == set(COMPLETED)
    assert len(OPTIONS) > 40 and len(COMMANDS) > 30


@each("words, option", OPTIONS)
def test_options_with_known_values_complete_them(words: str, option: str) -> None:
    """`mine --split`, and that of compare, report and `data features`, completed nothing, nor did `table --format`."""
    command = COMMANDS[words]
    (parameter,) = [one for one in command.params if option in one.opts]

    def completed(typed: str) -> list[str]:
        return [item.value for item in parameter.shell_complete(Context(command, info_name=words), typed)]

    assert len(completed("")) >= 2
    first = completed("")[0]
    assert first in completed(first[:2]) and completed("no-such-value") == []
