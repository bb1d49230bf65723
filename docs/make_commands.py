"""docs/commands.in.md -> docs/commands.md: every command with the examples and options of its --help.

`--check` writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

from generated_page import write_or_compare
from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from lossscope.declarations import declarations

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "commands.in.md"
PAGE = ROOT / "docs" / "commands.md"
NOTE = (
    "<!-- Made by docs/make_commands.py from docs/commands.in.md and the docstrings of cli/. Change those, then "
    "`make docs`. -->\n\n"
)
NAME = "lossscope"
PROBES = [item.name.replace("_", "-") for item in declarations("probes") if item.name != "cocos"]
EXAMPLE = re.compile(r"^`((?:lossscope|PYTHONSAFEPATH=1 torchrun) [^`]+)`$", re.M)


def page(source: str) -> str:
    """Return the page: the template with its table and sections."""
    listed = dict(commands())
    filled = source.replace("<!-- table -->", table(listed))
    return NOTE + filled.replace("<!-- sections -->", "\n".join(map(section, listed, listed.values())).rstrip("\n"))


def commands(group: Any = None, words: str = NAME) -> Iterator[tuple[str, Any]]:
    """Yield the words and the command of every listed command, such as `lossscope study run`."""
    group = group or get_command(import_module("lossscope_cli").app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{words} {name}")
        elif not command.hidden:
            yield f"{words} {name}", command
            if name == "probe":
                yield from ((f"{words} probe {probe}", group.commands[probe]) for probe in PROBES)


def examples(command: Any) -> list[str]:
    """Return the example lines of a command's --help."""
    return EXAMPLE.findall(command.help)


def table(listed: dict[str, Any]) -> str:
    """Return a table of the commands: a link to the section, and the first line of the help."""
    rows = ["| command | does |", "|---|---|"]
    for words, command in listed.items():
        anchor = words.replace(" ", "-")
        rows.append(f"| [`{words}`](#{anchor}) | {command.help.splitlines()[0].replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def section(words: str, command: Any) -> str:
    """Return the section of a command: help, examples, usage and options; a probe's has only the probe's options."""
    prefix, _, name = words.rpartition(" ")
    if of_probe := prefix == f"{NAME} probe":
        command = copy(command)
        command.params = [option for option in command.params if option.rich_help_panel == "Probe"]
    text: str = get_docs_for_click(obj=command, ctx=Context(command, info_name=name), name=name, call_prefix=prefix)
    _, _, body = text.partition("\n")
    body = re.sub(r"\*\*Examples\*\*\n\n((?:`[^`]+`\n\n)+)", lambda found: _block(found[1]), body)
    body = re.sub(r"^\* `--help(-all)?`.*\n", "", body, flags=re.M)
    if of_probe:
        body = re.sub(r"\*\*Usage\*\*:\n\n```.*?```\n\n", "", body, flags=re.S)
        body = re.sub(r"\*\*Options\*\*:\n\n(?!\*)", "", body)
    body = re.sub(r"\*\*(Usage|Arguments|Options)\*\*:", r"**\1**", body)
    body = body.replace("```console\n$ ", "```text\n")
    return f"## `{words}`\n{body.rstrip()}\n"


def _block(lines: str) -> str:
    """Return the lines in backticks as a block of shell code."""
    return "```sh\n" + "\n".join(EXAMPLE.findall(lines)) + "\n```\n\n"


def main(arguments: list[str]) -> int:
    """Write the page, or compare the file with it."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
