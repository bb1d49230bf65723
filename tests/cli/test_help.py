"""Is the help of every command whole at the usual widths, and do options with known values complete them?"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lossscope_cli import app
from rich.cells import cell_len
from typer import Context

from lossscope.declarations import declarations
from tests.command_line import document, lossscope, plain, tree
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


PROBES = {declared.name.replace("_", "-") for declared in declarations("probes")}
MOST = 15  # options of a first help, with --help and --help-all


def shown_help(words: str, width: int, option: str = "--help-all") -> str:
    result = lossscope(*words.split(), option, columns=width)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@each("words", COMMANDS, "width", [80, 100])
def test_help_is_no_wider_than_the_terminal_and_shows_examples_options_and_choices_whole(
    words: str, width: int
) -> None:
    """`train --help` cut off an option at 80 columns and broke a choice within a word."""
    text = shown_help(words, width)
    if words not in ("demo", "study worker"):
        typed = f"probe {words}" if words in PROBES - {"cocos"} else words
        assert f"lossscope {typed} " in plain(text).partition("Examples")[2]
    assert "…" not in text and all(cell_len(line) <= width for line in text.splitlines())
    parts = set(re.findall(r"[\w.@-]+", text))
    for parameter in COMMANDS[words].params:
        names = [*parameter.opts, *parameter.secondary_opts] if parameter.opts[0].startswith("-") else []
        assert set(names) <= parts
        choices = re.fullmatch(r"<(.*\|.*)>", parameter.display_type_rich(Context(COMMANDS[words])) or "")
        assert choices is None or set(choices[1].split("|")) <= parts


@each("words", COMMANDS)
def test_the_first_help_has_at_most_three_headings_and_says_how_to_see_the_rest(words: str) -> None:
    """`cocos` had 43 options under eight headings, `train` 52."""
    text = shown_help(words, 80, "--help")
    assert len(re.findall(r"^╭─", text, re.M)) <= 3
    shown = set(re.findall(r"^│ (?:\*  )? *(--[\w-]+)", text, re.M))
    options = {parameter.opts[0] for parameter in COMMANDS[words].params if parameter.opts[0].startswith("--")}
    assert len(shown) <= MOST
    left_out = len(options - shown - {"--help-all"})
    assert left_out == 0 or f"--help-all shows {left_out} more options" in plain(text)


def test_the_commands_of_a_users_questions_stand_first_and_old_words_are_not_listed() -> None:
    """A newcomer met 35 entries: a command for each probe, `table` beside `plot`."""
    for words in ([], ["--help"]):
        result = lossscope(*words, columns=80)
        text = result.stdout or result.stderr
        first, *others = re.split(r"^╭─ .*$", text.partition("╭─")[2], flags=re.M)
        names = re.findall(r"^│ ([a-z]+)  ", first, re.M)
        assert names == ["doctor", "cocos", "eval", "diff", "audit", "diagram", "train", "demo"]
        listed = re.findall(r"^│ ([a-z-]+)  ", "".join(others), re.M)
        assert {"probe", "render", "compare"} <= set(listed)
        assert not {"plot", "table", *PROBES} & set(listed)
        assert len(re.findall("^│", first, re.M)) == len(names), "a command takes one line at 80 columns"


def test_a_probe_is_named_before_its_source_and_its_old_word_does_the_same() -> None:
    new, old = (lossscope(*words, "tiny", "--format", "json", "-q") for words in (["probe", "recall"], ["recall"]))
    assert document(new) == document(old)
    assert "lossscope probe recall" in plain(lossscope("probe", "recall", "--help").stdout)


def test_a_file_that_is_named_like_a_probe_is_a_source_with_its_folder(tiny_checkpoint: Path) -> None:
    shutil.copytree(tiny_checkpoint.parent, "recall")
    result = lossscope("probe", "./recall", "--probes", "recall", "--format", "json", "-q")
    assert {row["probe"] for row in document(result)["rows"]} == {"recall"}
    assert lossscope("probe", "recall").exit_code == 2  # a probe without a source


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
    (parameter,) = [candidate for candidate in command.params if option in candidate.opts]

    def completed(typed: str) -> list[str]:
        return [item.value for item in parameter.shell_complete(Context(command, info_name=words), typed)]

    assert len(completed("")) >= 2
    first = completed("")[0]
    assert first in completed(first[:2]) and completed("no-such-value") == []
