"""Does the page of utility print what the command prints, up to the last bits of another machine?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import lossscope

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analyses" / "utility.md").read_text(encoding="utf-8")
LINE = re.compile(r"^(margin) +(\S+:\S+) +(.*)$", re.M)
"""A line of the margin: R@1 and nDCG turn on the order of equal captions, which the last bits decide."""


def lines(text: str) -> list[tuple[str, list[str]]]:
    """Return the loss of each line of the margin, and its cells."""
    return [(objective, re.split(r" {2,}| to ", cells)) for _, objective, cells in LINE.findall(text)]


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.replace("−", "-")) for cell in cells if re.fullmatch(r"−?\d+\.\d+", cell)]


@pytest.mark.thorough
def test_the_page_shows_the_output_of_its_first_command() -> None:
    command = re.findall(r"^lossscope (analyse utility tiny .*)$", PAGE, re.M)[0]
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)[0]
    result = lossscope(*command.split(), columns=120)
    assert result.exit_code == 0, result.stderr
    of_page, of_command = lines(shown), lines(result.stdout)
    assert len(of_page) == len(of_command) == 6 and len(shown.splitlines()) == len(result.stdout.splitlines())
    for (objective, cells), (other, printed) in zip(of_page, of_command, strict=True):
        assert objective == other and len(cells) == len(printed)
        assert numbers(cells) == pytest.approx(numbers(printed), rel=0.02, abs=2e-6), objective


def test_the_table_of_steps_has_the_change_of_the_shown_output() -> None:
    shown = {objective: cells[1] for objective, cells in lines(PAGE)[:3]}
    row = next(line for line in PAGE.splitlines() if line.startswith("| **0.0001** |"))
    in_table = [float(cell) for cell in row.split("|")[2:5]]
    assert in_table == [pytest.approx(float(change), abs=6e-6) for change in shown.values()]
