"""The command lines that README, docs/, CONTRIBUTING.md and the --help of commands show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.M | re.S)
_COMMENT = re.compile(r"\s+#.*$")
_DECIMAL = re.compile(r"(?<![\w.=])\d+\.(\d+)(?!\.?\d)")  # of no version or spec


@dataclass(frozen=True)
class ConsoleLine:
    """A line that a reader may type."""

    text: str  # without prompt and comment
    page: str
    output: str  # the output that the page shows below it; empty where it shows none


def pages() -> list[Path]:
    """Return the pages with command lines; pages made from --help are read from --help."""
    docs = [page for page in (ROOT / "docs").rglob("*.md") if not page.name.endswith(".in.md")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(docs)]


def lines_of(page: Path) -> Iterator[ConsoleLine]:
    """Yield the lines of the blocks of a page; of a block with prompts, only the lines with a prompt."""
    for _, language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language not in ("sh", "console"):
            continue
        block = block.replace("\\\n", " ")
        prompts = block.startswith("$ ")
        for part in re.split(r"^\$ ", block, flags=re.M)[1:] if prompts else block.splitlines():
            text, _, output = part.partition("\n")
            if text.strip():
                yield ConsoleLine(_COMMENT.sub("", text).strip(), page.name, output)


def all_lines() -> dict[str, ConsoleLine]:
    """Return every line once, by its text; prefer the line that is shown with its output."""
    found = [line for page in pages() for line in lines_of(page)]
    return {line.text: line for line in sorted(found, key=lambda line: bool(line.output))}


def differences(printed: str, shown: str) -> list[str]:
    """Return the lines that a page shows and a command does not print.

    Spaces may differ, and decimals by a unit of the last digit, which another processor may round otherwise.
    """
    lines = zip_longest(printed.splitlines(), shown.splitlines(), fillvalue="")
    return [f"{line} | {other}" for line, other in lines if not _agree(line, other)]


def _agree(line: str, other: str) -> bool:
    if _DECIMAL.sub("#", line).split() != _DECIMAL.sub("#", other).split():
        return False
    pairs = zip(_DECIMAL.finditer(line), _DECIMAL.finditer(other), strict=True)
    return all(len(a[1]) == len(b[1]) and abs(float(a[0]) - float(b[0])) < 1.5 * 10.0 ** -len(b[1]) for a, b in pairs)
