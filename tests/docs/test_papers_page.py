"""Does docs/papers.md name every table, figure and recipe of the papers as lossscope has them?"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from lossscope.declarations import declarations
from lossscope.io.shipped import shipped_files

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
PRESETS = sorted(path.stem for path in (ROOT / "lossscope" / "training" / "presets").glob("*.toml"))


def _rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its two first lines."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_numbered_table_has_a_line() -> None:
    named = set()
    for row in _rows("Tables"):
        found = re.findall(r"`([a-z]+\d+)_(\d)`", row[1])
        numbers = [int(number) for _, number in found]
        whole = range(numbers[0], numbers[-1] + 1) if " to " in row[1] else numbers
        named |= {f"{found[0][0]}_{number}" for number in whole}
    tables = {item.name for item in declarations("tables") if re.fullmatch(r"[a-z]+\d{4}_\d", item.name)}
    assert named == tables


def test_the_pictures_of_the_figures_exist() -> None:
    pictures = {item.name for item in declarations("pictures")}
    named = {name for row in _rows("Figures") for name in re.findall(r"`([a-z_]+)`", row[1])}
    assert len(named) == 7 and named <= pictures


def test_every_preset_of_a_recipe_exists_and_every_study_that_is_named_comes_with_lossscope() -> None:
    for row in _rows("Recipes"):
        for name in re.findall(r"`([a-z_0-9*]+)`", row[1]):
            assert any(fnmatchcase(preset, name) for preset in PRESETS), name
    studies = set(shipped_files("studies"))
    named = set(re.findall(r"`((?:bleeker2022|xuan2023|li2022)-[a-z0-9-]+)`", PAGE))
    assert named and named <= studies
