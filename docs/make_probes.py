"""docs/probes.in.md -> docs/probes.md: a row and a section for every probe, from its file.

`--check` writes nothing and exits 1 with a diff when the page is not what would be written.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from pathlib import Path

from lossscope.probes.base import Probe, Statistic
from lossscope.registry import build, names, spec_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "probes.in.md"
PAGE = ROOT / "docs" / "probes.md"
HOME = ROOT / "lossscope" / "probes"
NOTE = (
    "<!-- Made by docs/make_probes.py from docs/probes.in.md and the docstrings of lossscope/probes. Change those, "
    "then `make docs`. -->\n\n"
)
OBJECTIVES = ("triplet", "ntxent", "smoothap")  # whose statistics are told, where they differ


def page(source: str) -> str:
    """The template with the table and the sections in it."""
    probes = {name: build("probes", name) for name in names("probes") if (HOME / f"{name}.py").is_file()}
    filled = source.replace("<!-- table -->", table(probes))
    sections = "\n".join(section(name, probe) for name, probe in probes.items())
    return NOTE + filled.replace("<!-- sections -->", sections.rstrip("\n"))


def table(probes: dict[str, Probe]) -> str:
    """One row each: name, question, per what, whether it weighs an objective, whether it is cheap."""
    rows = ["| probe | asks | for each | of W | cheap |", "|---|---|---|---|---|"]
    for name, probe in probes.items():
        marks = ("yes" if probe.needs_objective else "", "yes" if probe.cheap else "")
        cells = (f"[`{name}`](#{name})", _text(question(probe)), probe.axis, *marks)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def question(probe: Probe) -> str:
    """The first line of its file, without its name."""
    first = (inspect.getdoc(inspect.getmodule(type(probe))) or "").splitlines()[0]
    asked = first.partition(": ")[2] or first
    return asked[:1].upper() + asked[1:]


def section(name: str, probe: Probe) -> str:
    """What it computes, its statistics and options, where it comes from."""
    value, _, rest = (inspect.getdoc(type(probe)) or "").partition("\n")
    told, _, source = rest.partition("Source: ")
    source = source.split("\nRaises")[0]
    told = told.split("\nRaises")[0]
    parts = {
        "Statistics": ", ".join(f"`{one.name}` ({one.unit})" for one in statistics(probe)),
        "Options": f"`{spec_of(probe)}`" if ":" in spec_of(probe) else "",
        "Source": _text(" ".join(source.split())),
    }
    lines = [f"### `{name}`", _text(question(probe)), f"`{value}`", _text(" ".join(told.split()))]
    lines.append("\n".join(f"- **{label}** {text}" for label, text in parts.items() if text))
    return "\n\n".join(line for line in lines if line) + "\n"


def statistics(probe: Probe) -> list[Statistic]:
    """Everything it reports, of any objective."""
    objectives = [build("objectives", spec) for spec in OBJECTIVES] if probe.needs_objective else [None]
    return list(dict.fromkeys(one for objective in objectives for one in probe.statistics(objective)))


def _text(text: str) -> str:
    """Formulas in plain text, so that Markdown shows them as they are."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"\*|(?<!\w)_|_(?!\w)|<(?=\w)|(?<=\])\(", r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(pieces)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    made = page(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in arguments:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    labels = (f"{PAGE.name} as it is", f"{PAGE.name} as the probes have it")
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), made.splitlines(True), *labels))
    return int(found != made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
