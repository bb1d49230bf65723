"""Is every sentence of docs/security.md held by a test that exists?"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADING = "## Which test holds which sentence\n"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def split_page() -> tuple[str, list[tuple[str, str]]]:
    """Return the text above the table in one line, and the rows of the table: words of a sentence, and its tests."""
    above, _, below = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition(HEADING)
    lines = [line for line in below.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    rows = [line.strip("| ").split(" | ") for line in lines[1:]]
    return " ".join(above.split()), [(row[0], " | ".join(row[1:])) for row in rows]


@cache
def functions(file: Path) -> frozenset[str]:
    """Return the names of the functions of a file."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def test_every_test_that_the_page_names_exists() -> None:
    _, rows = split_page()
    named = [test for _, tests in rows for test in _TEST.findall(tests)]
    assert len(named) > 50
    assert [f"{file}::{name}" for file, name in named if name not in functions(ROOT / file)] == []


def test_every_row_quotes_the_page_and_names_a_test() -> None:
    above, rows = split_page()
    assert [words for words, _ in rows if words not in above] == []
    assert [words for words, tests in rows if not _TEST.search(tests)] == []


def test_every_kind_of_file_of_the_page_has_a_row() -> None:
    """A kind that is added to the table of checks names its tests, too."""
    page, rows = (ROOT / "docs" / "security.md").read_text(encoding="utf-8"), split_page()[1]
    checks = page.partition("## What is checked\n")[2].partition("\n\n`lossscope verify")[0]
    kinds = [line for line in checks.splitlines() if line.startswith("| ")][1:]
    assert len(kinds) > 15
    assert [line for line in kinds if not any(words in line for words, _ in rows)] == []
