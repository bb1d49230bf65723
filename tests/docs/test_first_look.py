"""Does the command print what the first look of docs/index.md shows?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import lossscope

PAGE = Path(__file__).parents[2] / "docs" / "index.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_the_first_look_is_what_the_command_prints() -> None:
    """Numbers agree to one unit of the last digit, which another machine may round otherwise."""
    (command, shown) = re.search(  # type: ignore[union-attr]
        r"^```console\n\$ lossscope ([^\n]*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
    ).groups()
    printed = lossscope(command, columns=120).stdout
    assert printed and NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for computed, stated in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        digits = len(stated.partition(".")[2])
        assert float(computed) == pytest.approx(float(stated), abs=1.01 * 10**-digits)
