"""docs/models.in.md -> docs/models.md: the effect of each option in the released files of each encoder family.

`--check` writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from generated_page import escape, markdown_table, write_or_compare

from lossscope.encoders.released.option_table import OptionTable
from lossscope.registry import load, names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "models.in.md"
PAGE = ROOT / "docs" / "models.md"
NOTE = (
    "<!-- Made by docs/make_models.py from docs/models.in.md and lossscope/encoders/released/known_options. Change "
    "those, then `make docs`. -->\n\n"
)
MARK = "<!-- options -->"
RELATED = ("vsepp", "vsrn", "vse_infty", "scan", "bfan", "sgraf")
"""Families with the option names of VSE++; they share a table."""


def page(source: str) -> str:
    """Return the page with its tables. Raises ValueError if the source does not have exactly one mark."""
    if source.count(MARK) != 1:
        raise ValueError(f"{SOURCE.name} must have one line {MARK}; got {source.count(MARK)}")
    families = tables()
    parts = [_shared_table({name: families[name] for name in RELATED})]
    parts += [_family_table(name, table) for name, table in families.items() if name not in RELATED]
    return NOTE + source.replace(MARK, "\n\n".join(parts))


def tables() -> dict[str, OptionTable]:
    """Return the option table of every family that opens files with options, by name."""
    known = {name: load("encoders", name).released_options for name in names("encoders")}
    return {name: table for name, table in known.items() if any(_rows(table))}


def _rows(table: OptionTable) -> Iterator[tuple[str, str, str]]:
    """Yield each option, its effect, and the reason, in the order of the lookup."""
    for name, refusal in table.refused.items():
        fine = " or ".join(f"`{value}`" if value != "" else "empty" for value in refusal.unless)
        yield name, f"refused unless {fine}" if fine else "refused", refusal.why
    for name, effect in table.done.items():
        yield name, "done", effect
    for name, reason in table.without_effect.items():
        yield name, "no effect", reason


def _shared_table(families: dict[str, OptionTable]) -> str:
    """Return a table of several families, with a row for each option."""
    known = {name: {option: what for option, what, _ in _rows(table)} for name, table in families.items()}
    options = sorted({option for rows in known.values() for option in rows})
    lines = [[f"`{option}`", *(rows.get(option, "–") for rows in known.values())] for option in options]
    reasons = [_family_table(name, table) for name, table in families.items()]
    return "\n\n".join([_table(["option", *(f"`{name}`" for name in known)], lines), *reasons])


def _family_table(name: str, table: OptionTable) -> str:
    """Return the options of one family, folded away; options with the same effect and reason share a row."""
    options: dict[tuple[str, str], list[str]] = {}
    for option, what, why in _rows(table):
        options.setdefault((what, why), []).append(f"`{option}`")
    lines = [[what, escape(why), ", ".join(sorted(same))] for (what, why), same in options.items()]
    number = sum(map(len, options.values()))
    body = _table(["here", "because", "options"], lines)
    return f'<details markdown="1"><summary><code>{name}</code>: {number} options</summary>\n\n{body}\n\n</details>'


def _table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return markdown_table(heading, ([cell.replace("|", "\\|") for cell in line] for line in lines))


def main(arguments: list[str]) -> int:
    """Write the page, or compare the file with it."""
    return write_or_compare(PAGE, page(SOURCE.read_text(encoding="utf-8")), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
