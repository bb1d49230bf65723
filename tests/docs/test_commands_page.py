"""Is docs/commands.md what --help says?"""

from __future__ import annotations

import re
from pathlib import Path

import make_commands
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_commands.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_every_command_has_a_row_and_a_section_with_examples() -> None:
    listed = dict(make_commands.commands())
    assert {
        "lossscope cocos",
        "lossscope study run",
        "lossscope data msrvtt",
        "lossscope probe weight-mass",
    } <= listed.keys()
    assert re.findall(r"^\| \[`(.+?)`\]", PAGE, re.M) == re.findall(r"^## `(.+)`$", PAGE, re.M) == list(listed)
    for words, command in listed.items():
        assert make_commands.examples(command), words
        assert all(f"\n{line}\n" in PAGE for line in make_commands.examples(command)), words
